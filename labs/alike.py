"""When are two pieces of code the same? Up to names, annotations, comments and layout; nothing is imported or run."""

import ast
import functools
import hashlib

from costlib.exercise import ROOT
from labs.holes import undocumented

DROPPED = {"ctx", "kind", "type_comment", "annotation", "returns", "decorator_list", "type_params"}

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@functools.cache
def fields(kind: type) -> tuple:
    """What of a node of this kind counts, its name apart."""
    return tuple(name for name in kind._fields if name not in DROPPED and not (kind in NAMED and name == "name"))


def normal(nodes: list, modules=()) -> tuple:
    """These nodes with names replaced by numbers in the order of their first use, docstrings and annotations dropped.
    `napkin.matmul_flops` is as good as `matmul_flops` where napkin is among the modules."""
    numbers = {}

    def number(name):
        return numbers.setdefault(name, len(numbers))

    def shape(node):
        kind = type(node)
        if kind is ast.Name:
            return number(node.id)
        if kind is ast.arg:
            return number(node.arg)
        if kind is list:
            return tuple(map(shape, undocumented(node)))
        if kind is ast.Attribute and modules and isinstance(node.value, ast.Name) and node.value.id in modules:
            return number(node.attr)
        if not isinstance(node, ast.AST):
            return repr(node)
        named = [number(node.name)] if kind in NAMED else []
        return (kind.__name__, *named, *[shape(getattr(node, name, None)) for name in fields(kind)])

    return tuple(map(shape, nodes))


@functools.cache
def published(module: str, modules: tuple) -> dict:
    """{name: normal form} of a module's answers of more than one statement: a formula of one line is everybody's."""
    tree = ast.parse((ROOT / f"solutions/{module}.py").read_bytes())
    bodies = {node.name: undocumented(node.body) for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name: normal(body, modules) for name, body in bodies.items() if len(body) > 1}


def compared(files: dict[str, bytes], modules: tuple) -> tuple[str, list[str], int]:
    """Of a submission: one hash of its code, which functions have the body that stands in solutions/, and of how many.
    No hash where a file cannot be read or is nested too deeply."""
    known = {name: body for module in modules for name, body in published(module, modules).items()}
    try:
        trees = [ast.parse(files[name]) for name in sorted(files)]
        code = hashlib.sha256(repr([normal(tree.body) for tree in trees]).encode()).hexdigest()
        written = {node.name: normal(undocumented(node.body), modules)
                   for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in known}  # fmt: skip
    except UNREADABLE:
        code, written = "", {}
    return code, [name for name in known if written.get(name) == known[name]], len(known)
