"""The glossary: the words of Part I, each explained once, linked where it is used, and every link answered."""

import re

import pytest
from test_pages import ROLE, book

PAGE = "chapters/appendix/glossary.md"
TERMS = """FLOP, FLOP/s, FMA, floating-point format, matrix product, systolic array, useful FLOPs, issued FLOPs, token,
vocabulary, decoder-only Transformer, block, residual stream, attention, head, query, key, value, causal mask, softmax,
logits, MLP, gated MLP, RMSNorm, RoPE, MHA, GQA, MQA, context length, parameter, embedding, tied embedding, non-embedding
parameters, forward pass, backward pass, gradient, 6ND, optimizer step, batch, mixture of experts, router, active
parameters, activation, activation checkpointing, MFU, HFU, optimizer state, Adam, mixed precision, master weights, HBM,
data parallelism, ZeRO, FSDP, tensor parallelism, pipeline parallelism, KV cache, prefill, decode, arithmetic intensity,
machine balance, compute-bound, memory-bound, roofline, concurrency, scaling law, Chinchilla-optimal, over-training, PUE,
TDP, GB and GiB"""


def entries():
    """First name -> (all names, text) of every entry."""
    inside = re.search(r"(?s)```\{glossary\}\n(.*?)\n```", book()[PAGE].text)[1]
    found = {}
    for entry in inside.split("\n\n"):
        names = [line for line in entry.split("\n") if not line.startswith(" ")]
        found[names[0]] = names, " ".join(line.strip() for line in entry.split("\n")[len(names):])
    return found


def links(page):
    """(line, term) of every {term} on a page; "words <term>" leads to term."""
    text = "\n".join(page.prose)
    for match in ROLE.finditer(text):
        if match[1] == "term":
            target = re.sub(r"(?s).*<([^<>]+)>$", r"\1", match[2])
            yield text.count("\n", 0, match.start()) + 1, " ".join(target.split())


def test_it_holds_the_words_of_part_one():
    assert sorted(entries()) == sorted(" ".join(term.split()) for term in TERMS.split(","))


def test_it_is_sorted_and_names_nothing_twice():
    assert list(entries()) == sorted(entries(), key=str.casefold)
    names = [name.casefold() for names, _ in entries().values() for name in names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("term", entries())
def test_an_entry_is_short_and_says_where_it_is_explained(term):
    _, text = entries()[term]
    assert re.search(r"\]\(w-ch\d+", text), "link the chapter that owns the word"
    plain = re.sub(r"\]\([^)]*\)|\$[^$]*\$", "", text)
    assert 1 <= len(re.findall(r"[.?](?= [A-Z]|$)", plain)) <= 3, "one to three sentences"


def test_every_link_to_a_term_is_answered():
    known = {name.casefold() for names, _ in entries().values() for name in names}
    lost = [f"{path}:{line}: {term}" for path, page in book().items() for line, term in links(page)
            if term.casefold() not in known]
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("term", entries())
def test_a_chapter_of_part_one_links_the_term(term):
    names = {name.casefold() for name in entries()[term][0]}
    assert any(target.casefold() in names for path, page in book().items() if path.startswith("chapters/warmup/")
               for _, target in links(page)), f"link {{term}}`{term}` where it is first used"
