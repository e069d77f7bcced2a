"""python -m labs check 01 [EXERCISE] | hint 01 EXERCISE [N] | progress | success [A=3.5e14 ...] | submit 03
python -m labs grade SUBMISSION ... --lab 01 --out FOLDER | export FOLDER --to FORMAT | autograder 01 --out FILE
python -m labs release 01 03 | all --out FILE.zip | bench

A command whose module an edition of the course does not have is not there.
"""

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import lab_module
from labs import loop, spec


def check(args, loop) -> int:
    text, fine = loop.report(args.lab, args.exercise)
    print(text, flush=True)
    return 0 if fine else 1


def hint(args, loop) -> None:
    lab = spec.load(args.lab)
    loop.fresh(lab)
    print(loop.hint_text(lab, lab[args.exercise], args.number))


def progress(args, loop) -> None:
    print(loop.progress())


def success(args, success) -> int:
    found = success.checklist(success.parse_by_hand(args.estimate), whose="costlib")
    print(f"{success.shapes()}\n\n{found}", flush=True)
    return 1 if found.wrong else 0


def submit(args, submit) -> None:
    print(submit.pack(args.lab, args.learner, args.out))


def grade(args, batch) -> int:
    return batch.main(args)


def export(args, exports) -> None:
    exports.export(args.results, args.to, args.out)


def autograder(args, exports) -> None:
    print(exports.gradescope_zip(args.out, spec.load(args.lab).number, args.secret_file, args.overlay))


def release(args, release) -> int:
    return release.main(args)


def bench(args, bench) -> None:
    bench.main()


LAB = (("lab",), {})
MARKS = (
    (("--secret-file",), {"type": Path, "metavar": "FILE", "help": "the course's secret, from which further cases are drawn"}),
    (("--overlay",), {"type": Path, "metavar": "FOLDER", "help": "the instructor's own cases: overlay_01.py with CASES"}),
)
FORMATS = ("gradescope", "classroom50", "summary", "csv", "report", "nbgrader")

# command, its module, what it does, its arguments
COMMANDS = (
    (check, "loop", "judge a lab, or one exercise of it", LAB, (("exercise",), {"nargs": "?"})),
    (hint, "loop", "one hint at a time", LAB, (("exercise",), {}), (("number",), {"nargs": "?", "type": int, "default": 1})),
    (progress, "loop", "what is written, what passes, what is next"),
    (success, "success", "the success criteria of Part I, judged on your answers",
     (("estimate",), {"nargs": "*", "help": "a step's FLOPs by hand for one of the six shapes, A=3.5e14"})),
    (submit, "submit", "the file to hand in: the lab's modules, and nothing else", LAB, (("--learner",), {"metavar": "ID"}),
     (("--out",), {"type": Path, "metavar": "FOLDER", "help": "the course, if not given"})),
    (grade, "batch", "mark submissions in a sandbox: one result file for each learner",
     (("submissions",), {"nargs": "+", "type": Path, "help": "folders, zips, .py files, notebooks"}),
     (("--lab",), {"required": True}), (("--out",), {"type": Path, "required": True, "metavar": "FOLDER"}), *MARKS,
     (("--learner",), {"metavar": "ID", "help": "whose it is, where one submission's name does not say"}),
     (("--due",), {"metavar": "TIME", "help": "2026-11-30T23:59:00+01:00; lateness is written down, not applied"}),
     (("--jobs",), {"type": int, "default": 0, "help": "at a time; as many as there are processors, if not given"}),
     (("--trusted",), {"action": "store_true", "help": "without a sandbox, where none can start: your own code only"})),
    (export, "exports", "results of `grade` in the form that another system or you read",
     (("results",), {"type": Path, "help": "the folder that grade wrote, or one result of it"}),
     (("--to",), {"required": True, "choices": FORMATS}),
     (("--out",), {"type": Path, "help": "a file; a folder where every learner gets one"})),
    (autograder, "exports", "the zip to upload to Gradescope for one lab; not for learners", LAB,
     (("--out",), {"type": Path, "required": True}), *MARKS),
    (release, "release", "a class's edition, without any solution", (("labs",), {"nargs": "+", "help": "their numbers, or all"}),
     (("--out",), {"required": True, "metavar": "FILE.zip"}),
     (("--book",), {"metavar": "FOLDER", "help": "the built book, to go with it"}), *MARKS,
     (("--learners",), {"metavar": "FILE", "help": "their ids: with the secret, the answers that it draws are looked for"})),
    (bench, "bench", "the times people wait, as ratios to a named peer"),
)  # fmt: skip


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m labs", description="The loop around the labs.")
    commands = parser.add_subparsers(dest="command", required=True)
    for run, module, text, *arguments in COMMANDS:
        if importlib.util.find_spec(f"labs.{module}"):
            command = commands.add_parser(run.__name__, help=text)
            for words, options in arguments:
                command.add_argument(*words, **options)
            command.set_defaults(run=run, module=module)
    return parser.parse_args(argv)


def main(argv=None) -> int:
    """0: nothing written is wrong. 1: something is. 2: the command itself was wrong."""
    args = parse(argv)
    try:
        lab_module()
        return args.run(args, importlib.import_module(f"labs.{args.module}")) or 0
    except BrokenPipeError:  # the reader, `head` for instance, has seen enough
        sys.stdout = None
    except loop.BrokenFile as error:
        print(error)
        return 1
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
