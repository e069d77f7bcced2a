"""When do two people have the same code? Up to the names of local variables, annotations, comments and layout; nothing
is imported or run.

Python's own compiler makes the comparable form: in it a local variable is a number, and no comment, docstring (they are
left out on request), annotation or line remains.
"""

import ast
import functools
import hashlib
from opcode import opmap
from types import CodeType

from costlib.exercise import ROOT

NOTHING = opmap["NOP"]  # what is left of a docstring
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Unqualified(ast.NodeTransformer):
    """`napkin.matmul_flops` as `matmul_flops`: the reference calls through the module, a learner calls in it."""

    def __init__(self, modules):
        self.modules = modules

    def visit_Attribute(self, node):
        self.generic_visit(node)
        own = isinstance(node.value, ast.Name) and node.value.id in self.modules
        return ast.copy_location(ast.Name(node.attr, ast.Load()), node) if own else node


def form(code: CodeType) -> tuple:
    """What a piece of code does, whatever its variables are called."""
    constants = tuple(form(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts)
    steps = [code.co_code[i : i + 2] for i in range(0, len(code.co_code), 2) if code.co_code[i] != NOTHING]
    return code.co_argcount, code.co_kwonlyargcount, code.co_flags, b"".join(steps), code.co_exceptiontable, code.co_names, constants


def functions(text: bytes, modules) -> dict[str, tuple]:
    """{name: form} of the functions of a module. Alone, for the compiler treats what is imported beside them otherwise."""
    tree = ast.parse(text)
    if any(f"{module}.".encode() in text for module in modules):
        tree = Unqualified(modules).visit(tree)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    module = compile(tree, "", "exec", dont_inherit=True, optimize=2)
    return {part.co_name: form(part) for part in module.co_consts if isinstance(part, CodeType)}


@functools.cache
def published(module: str, modules: tuple) -> dict[str, tuple]:
    """The same of a module of solutions, where there is more than one statement: a formula of one line is everybody's."""
    text = (ROOT / f"solutions/{module}.py").read_bytes()
    longer = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and len(node.body) > 1}
    return {name: body for name, body in functions(text, modules).items() if name in longer}


def compared(files: dict[str, bytes], modules: tuple) -> tuple[str, list[str], int]:
    """Of a submission: one hash of its functions, which of them have the body that stands in solutions/, and of how
    many. No hash where a file cannot be read or is nested too deeply."""
    known = {name: body for module in modules for name, body in published(module, modules).items()}
    try:
        written = [functions(files[name], modules) for name in sorted(files)]
    except UNREADABLE:
        return "", [], len(known)
    code = hashlib.sha256(repr([sorted(each.items()) for each in written]).encode("utf-8", "backslashreplace")).hexdigest()
    return code, [name for each in written for name, body in each.items() if known.get(name) == body], len(known)
