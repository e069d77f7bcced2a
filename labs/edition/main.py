"""python -m labs check 01 [EXERCISE] | hint 01 EXERCISE [N] | progress | submit 01 [--learner ID] [--out FOLDER]"""

import argparse
import sys
from pathlib import Path

from costlib.domain import ManifestError
from costlib.exercise import lab_module
from labs import loop, spec, submit


def main(argv=None) -> int:
    """0: nothing written is wrong. 1: something is. 2: the command itself was wrong."""
    parser = argparse.ArgumentParser(prog="python -m labs", description="The loop around the labs.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("check", "judge a lab, or one exercise of it"), ("hint", "one hint at a time"), ("submit", "the file to hand in")):
        command = commands.add_parser(name, help=text)
        command.add_argument("lab")
        if name != "submit":
            command.add_argument("exercise", nargs="?" if name == "check" else None)
        if name == "hint":
            command.add_argument("number", nargs="?", type=int, default=1)
        if name == "submit":
            command.add_argument("--learner", metavar="ID")
            command.add_argument("--out", type=Path, metavar="FOLDER", help="_build, if not given")
    commands.add_parser("progress", help="what is written, what passes, what is next")
    args = parser.parse_args(argv)
    try:
        lab_module()
        if args.command == "check":
            text, fine = loop.report(args.lab, args.exercise)
            print(text, flush=True)
            return 0 if fine else 1
        if args.command == "hint":
            lab = spec.load(args.lab)
            loop.fresh(lab)
            print(loop.hint_text(lab, lab[args.exercise], args.number))
        elif args.command == "submit":
            print(submit.pack(args.lab, args.learner, args.out))
        else:
            print(loop.progress())
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
