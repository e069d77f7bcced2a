"""python -m labs check 01 [EXERCISE] | hint 01 EXERCISE [N] | progress | success [A=3.5e14 ...] | bench"""

import argparse
import sys

from costlib.domain import ManifestError
from costlib.exercise import lab_module
from labs import loop, spec, success


def main(argv=None) -> int:
    """0: nothing written is wrong. 1: something is. 2: the command itself was wrong."""
    parser = argparse.ArgumentParser(prog="python -m labs", description="The loop around the labs.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="judge a lab, or one exercise of it")
    check.add_argument("lab")
    check.add_argument("exercise", nargs="?")
    hint = commands.add_parser("hint", help="one hint at a time")
    hint.add_argument("lab")
    hint.add_argument("exercise")
    hint.add_argument("number", nargs="?", type=int, default=1)
    commands.add_parser("progress", help="what is written, what passes, what is next")
    done = commands.add_parser("success", help="the success criteria of Part I, judged on your answers")
    done.add_argument("estimate", nargs="*", help="a step's FLOPs by hand for one of the six shapes, A=3.5e14")
    commands.add_parser("bench", help="the times people wait, as ratios to a named peer")
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
        elif args.command == "success":
            found = success.checklist(success.parse_by_hand(args.estimate), whose="costlib")
            print(f"{success.shapes()}\n\n{found}", flush=True)
            return 1 if found.wrong else 0
        elif args.command == "progress":
            print(loop.progress())
        else:
            from labs import bench

            bench.main()
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
