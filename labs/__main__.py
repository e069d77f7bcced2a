"""python -m labs check 01 [EXERCISE] | hint 01 EXERCISE [N] | progress | success [A=3.5e14 ...] | bench
| submit 03 [--learner ID] [--out FOLDER]
| release 01 03 | all --out FILE.zip [--book FOLDER]
| export DIR --to FORMAT [--out FILE] | autograder 01 --out FILE"""

import argparse
import sys
from pathlib import Path

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
    hand_in = commands.add_parser("submit", help="the file to hand in: the lab's modules, and nothing else")
    hand_in.add_argument("lab")
    hand_in.add_argument("--learner", metavar="ID")
    hand_in.add_argument("--out", type=Path, metavar="FOLDER", help="_build, if not given")
    edition = commands.add_parser("release", help="a class's edition, without any solution")
    edition.add_argument("labs", nargs="+", help="their numbers, or all")
    edition.add_argument("--out", required=True, metavar="FILE.zip")
    edition.add_argument("--book", metavar="FOLDER", help="the built book, to go with it")
    edition.add_argument("--secret-file", metavar="FILE", help="the course's secret, which no file of the edition may hold")
    edition.add_argument("--learners", metavar="FILE", help="their ids: with the secret, the answers that it draws are looked for")
    commands.add_parser("bench", help="the times people wait, as ratios to a named peer")
    export = commands.add_parser("export", help="results of `grade` in the form that another system or you read")
    export.add_argument("results", type=Path, help="the folder that grade wrote, or one result of it")
    export.add_argument("--to", required=True, choices=("gradescope", "classroom50", "summary", "csv", "report", "nbgrader"))
    export.add_argument("--out", type=Path, help="a file; a folder where every learner gets one")
    upload = commands.add_parser("autograder", help="the zip to upload to Gradescope for one lab; not for learners")
    upload.add_argument("lab")
    upload.add_argument("--out", type=Path, required=True)
    upload.add_argument("--secret-file", type=Path)
    upload.add_argument("--overlay", type=Path)
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
        elif args.command == "submit":
            from labs import submit

            print(submit.pack(args.lab, args.learner, args.out))
        elif args.command == "export":
            from labs import exports

            exports.export(args.results, args.to, args.out)
        elif args.command == "autograder":
            from labs import exports

            print(exports.gradescope_zip(args.out, spec.load(args.lab).number, args.secret_file, args.overlay))
        elif args.command == "release":
            from labs import release

            return release.main(args)
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
