"""What did the class misunderstand, and whom should the instructor look at? One HTML file, nothing to load or run.

The class by misconception comes first: how many made the same mistake, and what each of them has been told.
Everything that a learner wrote, printed or named is cleaned and escaped.
"""

import html as markup
from collections import Counter, defaultdict
from fractions import Fraction

from labs.exports import UNWRITTEN, clean, ordered

NAMELESS = {"": "wrong", "unknown": "wrong", "hidden": "the shown cases right, others wrong"}
AT_FIRST = 12  # mistakes that are shown before the rarer ones are folded away
PARTS = ("right", "partly", "wrong", "not written")
STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --soft: #5a6876; --page: #fff; --line: #d5dce3; --box: #f3f6f9;
  --bar: #1f4e79; --right: #1f4e79; --partly: #6f9fce; --wrong: #c0561b; --unwritten: #c3ccd5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9fadba; --page: #14191e; --line: #35404a;
  --box: #1d242b; --bar: #8ab8e6; --right: #8ab8e6; --partly: #4d7eaf; --wrong: #e8894f; --unwritten: #4a5560; } }
* { box-sizing: border-box; }
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem;
  padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 1rem; }
h2 { border-top: 1px solid var(--line); font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .5rem; padding-top: 1.25rem; }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
code { font: .9em ui-monospace, monospace; }
.soft { color: var(--soft); }
.counts { display: flex; flex-wrap: wrap; gap: .75rem; list-style: none; margin: 0; padding: 0; }
.counts li { background: var(--box); border-radius: .4rem; flex: 1 1 8rem; padding: .6rem .9rem; }
.counts b { display: block; font-size: 1.3rem; line-height: 1.3; white-space: nowrap; font-variant-numeric: tabular-nums; }
.mistakes { list-style: none; margin: 0; padding: 0; }
.mistakes li { margin: 1.1rem 0; }
.mistakes p { margin: .1rem 0; }
blockquote { border-left: 3px solid var(--line); color: var(--soft); margin: .3rem 0 0; padding-left: .75rem; white-space: pre-line;
  max-width: 46rem; }
svg { display: block; max-width: 100%; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg.scores { max-width: 32rem; width: 100%; } .scores text { font-size: 11px; text-anchor: middle; }
svg .axis { stroke: var(--soft); }
.bar { fill: var(--bar); } .back { fill: var(--box); }
.right { fill: var(--right); } .partly { fill: var(--partly); } .wrong { fill: var(--wrong); } .not-written { fill: var(--unwritten); }
.key { display: inline-block; height: .8em; margin: 0 .3em 0 0; width: .8em; } .keys span { margin-right: 1rem; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem 1.25rem .3rem 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.long { min-width: 14rem; overflow-wrap: anywhere; white-space: pre-line; }
td svg { max-width: none; }
summary { cursor: pointer; }
"""


def text(value) -> str:
    return markup.escape(clean(value), quote=True)


def html(results) -> str:
    """The report of a class; results of several labs follow each other."""
    results = ordered(results)
    labs = list(dict.fromkeys(result["lab"] for result in results))
    title = f"Lab {', '.join(labs)}: the class report"
    body = "".join(_lab(lab, [result for result in results if result["lab"] == lab], len(labs) > 1) for lab in labs)
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{text(title)}</h1>\n{body}</body>\n</html>\n"
    )


def _lab(lab, results, several) -> str:
    graded = [result for result in results if result["status"] == "graded"]
    head = f"<h2>Lab {text(lab)}</h2>\n" if several else ""
    return head + "\n".join([
        _counts(results, graded), _mistakes(graded), _functions(graded), _scores(graded), _look(results, graded), _everyone(results),
        _how(results),
    ]) + "\n"  # fmt: skip


def _counts(results, graded) -> str:
    full = sum(result["score"] == result["max_score"] for result in graded)
    late = sum((result["submission"]["late_seconds"] or 0) > 0 for result in results)
    scores = sorted(Fraction(result["score"]) for result in graded)
    middle = (scores[(len(scores) - 1) // 2] + scores[len(scores) // 2]) / 2 if scores else None
    rows = [(len(results), "submissions"), (len(graded), "graded"), (full, "with full points")]
    if middle is not None:
        most = max((result["max_score"] for result in graded), key=Fraction)
        rows.append((f"{float(middle):g} of {most}", "points, the median"))
    rows += [(_number(results, "not-gradable"), "not gradable"), (late, "late")]
    if _number(results, "grader-broken"):
        rows.append((_number(results, "grader-broken"), "not judged: the grader was broken"))
    return "<ul class='counts'>" + "".join(f"<li><b>{text(n)}</b>{text(what)}</li>" for n, what in rows) + "</ul>"


def _number(results, status) -> int:
    return sum(result["status"] == status for result in results)


def misconceptions(graded) -> list[tuple]:
    """(how many, function, mistake, what they are told), most learners first."""
    hints = defaultdict(Counter)
    for result in graded:
        for function in result["functions"]:
            if function["mistake"] == "import":  # one mistake, and not one in each function
                hints["", "import"][function["hint"]] += function is result["functions"][0]
            elif function["status"] != "pass" and function["status"] not in UNWRITTEN:
                hints[function["name"], function["mistake"]][function["hint"]] += 1
    rows = [(each.total(), name, mistake, min(each, key=lambda hint: (-each[hint], hint)), len(each))
            for (name, mistake), each in hints.items()]  # fmt: skip
    return sorted(rows, key=lambda row: (-row[0], row[1], row[2]))


def _mistakes(graded) -> str:
    rows = misconceptions(graded)
    named = [_mistake(len(graded), *row) for row in rows if row[2] not in NAMELESS]
    nameless = [[count, f"<code>{text(name)}</code>", text(NAMELESS[mistake])] for count, name, mistake, *_ in rows if mistake in NAMELESS]
    lead = "How many made it, and what each of them was told." if named else "No known mistake was made."
    parts = ["<h2>The class by misconception</h2>", f"<p class='soft'>{lead}</p>", f"<ol class='mistakes'>{''.join(named[:AT_FIRST])}</ol>"]
    if named[AT_FIRST:]:
        parts.append(f"<details><summary>{len(named) - AT_FIRST} rarer ones</summary>"
                     f"<ol class='mistakes'>{''.join(named[AT_FIRST:])}</ol></details>")  # fmt: skip
    if nameless:
        parts.append("<h3>Wrong without a known mistake</h3>\n<p class='soft'>Many in one function may share a mistake that has no name yet.</p>\n"
                     + _table("Wrong without a known mistake", ["learners", "function", "what"], nameless, numeric=(0,)))  # fmt: skip
    return "\n".join(parts)


def _mistake(whole, count, name, mistake, hint, kinds) -> str:
    where = f"<code>{text(name)}</code>" if name else "the whole file"
    return (f"<li><p><b>{count} of {whole}</b> in {where}: <strong>{text(mistake)}</strong></p>"
            f"{_bar(count, whole)}<blockquote>{'For instance: ' * (kinds > 1)}{text(hint)}</blockquote></li>")


def _bar(count, whole) -> str:
    """How many of the class; the words beside it say the same."""
    width = f"{100 * count / whole:.2f}"
    return (
        "<svg width='100%' height='10' aria-hidden='true'><rect class='back' width='100%' height='10' rx='2'/>"
        f"<rect class='bar' width='{width}%' height='10' rx='2'/></svg>"
    )


def part(function) -> str:
    """Which of PARTS a function's result is."""
    if function["status"] == "pass":
        return "right"
    if function["status"] in UNWRITTEN:
        return "not written"
    return "partly" if Fraction(function["score"]) else "wrong"


def _functions(graded) -> str:
    counts, helped = defaultdict(Counter), Counter()
    for result in graded:
        for function in result["functions"]:
            counts[function["name"]][part(function)] += 1
            helped[function["name"]] += function["run"] == "helped"
    rows = [[f"<code>{text(name)}</code>", _stack(each), *(each[kind] for kind in PARTS), helped[name]] for name, each in counts.items()]
    keys = "".join(
        f"<span><svg class='key' aria-hidden='true'><rect class='{kind.replace(' ', '-')}' width='100%' height='100%'/></svg>{kind}</span>"
        for kind in PARTS
    )
    return (
        "<h2>Function by function</h2>\n<p class='soft'>Helped: judged with right answers from prerequisites that were "
        f"not right; counted in the other columns too.</p>\n<p class='keys'>{keys}</p>\n"
        + _table("Function by function", ["function", "", *PARTS, "helped"], rows, numeric=range(2, 7))
    )


def _stack(each) -> str:
    whole, left, rects = each.total(), 0, ""
    for kind in PARTS:
        width = 96 * each[kind] / whole
        rects += f"<rect class='{kind.replace(' ', '-')}' x='{left:.2f}' width='{width:.2f}' height='14'/>" if width else ""
        left += width
    return f"<svg width='96' height='18' viewBox='0 -4 96 18' aria-hidden='true'>{rects}</svg>"


def tenths(graded) -> list[int]:
    """How many got 0 to under 10 %, ..., 90 to under 100 %, and all of the points."""
    bins = [0] * 11
    for result in graded:
        bins[int(10 * Fraction(result["score"]) / Fraction(result["max_score"]))] += 1
    return bins


def _scores(graded) -> str:
    if not graded:
        return ""
    bins, bars = tenths(graded), ""
    for i, count in enumerate(bins):
        height, x = 120 * count / max(bins), 2 + 32 * i
        bars += f"<rect class='bar' x='{x}' y='{140 - height:.2f}' width='28' height='{height:.2f}'/>" if count else ""
        bars += f"<text x='{x + 14}' y='{136 - height:.2f}'>{count}</text><text x='{x + 14}' y='155'>{10 * i}</text>"
    ranges = [*(f"{10 * i} to under {10 * i + 10}" for i in range(10)), "100"]
    said = ", ".join(f"{count} with {of} %" for of, count in zip(ranges, bins, strict=True) if count)
    return (
        "<h2>Scores</h2>\n<p class='soft'>How many learners have this many per cent of the points; full points stand alone.</p>\n"
        f"<svg class='scores' viewBox='0 0 356 160' role='img' aria-label='Learners by score: {said}'>"
        f"{bars}<line class='axis' x1='0' x2='356' y1='140.5' y2='140.5'/></svg>"
    )


def identical(results) -> list[tuple[str, list[str]]]:
    """(what is the same, whose): files that several learners handed in, starters left aside."""
    groups = defaultdict(list)
    for result in results:
        written = result["status"] != "graded" or any(f["status"] not in UNWRITTEN for f in result["functions"])
        same = result["submission"].get("code_sha256") or result["submission"]["sha256"]
        if written and same:
            groups[same].append(result)
    found = []
    for group in groups.values():
        learners = sorted({result["learner"] for result in group})
        if len(learners) > 1:
            bytes_too = len({result["submission"]["sha256"] for result in group}) == 1
            found.append(("the same file, byte for byte" if bytes_too else "the same code but for names, comments and layout", learners))
    return sorted(found, key=lambda row: row[1])


def _look(results, graded) -> str:
    parts = ["<h2>Learners to look at</h2>"]
    stuck = [result for result in results if result["status"] != "graded"]
    if stuck:
        rows = [[text(r["learner"]), text(r["status"]), text(r["reason"])] for r in stuck]
        parts.append("<h3>Not graded</h3>\n" + _table("Not graded", ["learner", "status", "what is wrong"], rows, long=2))
    flags = [[text(result["learner"]), text(flag)] for result in results for flag in result["flags"]]
    if flags:
        parts.append("<h3>Flags</h3>\n<p class='soft'>passes-public-fails-hidden: every shown case right and every other wrong. Is the "
                     "answer written down instead of computed? written-as-in-solutions: most of the functions that take more than one "
                     "statement are, up to their names, those of the course's public reference. Ask for an explanation of one.</p>\n" + _folded(_table("Flags", ["learner", "flag"], flags, long=1), len(flags)))  # fmt: skip
    files = [[text(result["learner"]), text(", ".join(result["unexpected_files"]))] for result in results if result["unexpected_files"]]
    if files:
        parts.append("<h3>Files that no lab asks for</h3>\n<p class='soft'>They were not read.</p>\n"
                     + _table("Files that no lab asks for", ["learner", "files"], files, long=1))  # fmt: skip
    same = [[text(", ".join(learners)), text(what)] for what, learners in identical(results)]
    if same:
        parts.append("<h3>Did these work together?</h3>\n<p class='soft'>A question, not a verdict: formulas of one line are often written "
                     "alike, and a pair may be allowed. Ask before you conclude.</p>\n"
                     + _table("Did these work together?", ["learners", "what is the same"], same, long=0))  # fmt: skip
    return "\n".join(parts if len(parts) > 1 else [*parts, "<p>Nobody in particular.</p>"])


def _folded(table, rows) -> str:
    return table if rows <= AT_FIRST else f"<details><summary>{rows} of them</summary>{table}</details>"


def _everyone(results) -> str:
    rows = [
        [text(r["learner"]), text(r["score"] if r["status"] != "grader-broken" else ""), text(r["max_score"]), text(r["status"]),
         text("" if r["submission"]["late_seconds"] is None else r["submission"]["late_seconds"]), f"<code>{text(r['seed'])}</code>",
         f"<code>{text(r['submission']['sha256'][:12])}</code>"]
        for r in results
    ]  # fmt: skip
    head = ["learner", "score", "of", "status", "seconds late", "seed label", "files' sha256"]
    return (f"<h2>Everyone</h2>\n<details><summary>{len(results)} submissions</summary>\n"
            + _table("Everyone", head, rows, numeric=(1, 2, 4)) + "</details>")  # fmt: skip


def _how(results) -> str:
    kinds = Counter((r["sandbox"]["backend"], r["sandbox"]["python"], r["lab_version"], tuple(sorted(r["sandbox"]["limits"].items())))
                    for r in results)  # fmt: skip
    seeds = sorted({result["seed"] for result in results})
    label = f"Seed label <code>{text(seeds[0])}</code>." if len(seeds) == 1 else f"{len(seeds)} seed labels, listed under Everyone."
    rows = [
        [count, text(backend), text(python), f"<code>{text(version)}</code>", text(", ".join(f"{name} {value}" for name, value in limits))]
        for (backend, python, version, limits), count in sorted(kinds.items())
    ]
    unsafe = any(result["sandbox"]["backend"] == "none" for result in results)
    return (
        f"<h2>How it was graded</h2>\n<p>{label} The same submissions, secret and lab version give the same results.</p>\n"
        + ("<p><strong>Some ran without a sandbox (backend none).</strong> Grade again with bwrap before you use these marks.</p>\n" if unsafe else "")
        + _table("How it was graded", ["submissions", "backend", "Python", "lab version", "limits"], rows, numeric=(0,), long=4)
    )


def _table(label, head, rows, numeric=(), long=None) -> str:
    """Cells are HTML already. A wide table scrolls in its own box."""
    def kind(i):
        return " class='n'" if i in numeric else " class='long'" if i == long else ""

    top = "".join(f"<th scope='col'{kind(i)}>{text(cell)}</th>" for i, cell in enumerate(head))
    body = "\n".join("<tr>" + "".join(f"<td{kind(i)}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return (f"<div class='scroll' tabindex='0' role='region' aria-label='{text(label)}'>"
            f"<table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>")  # fmt: skip
