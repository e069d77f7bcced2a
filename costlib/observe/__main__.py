"""Records what the observers see, or compares it with what is recorded.

    python -m costlib.observe [NAME ...]            write the bundles, all of them without a name
    python -m costlib.observe --check [NAME ...]    observe anew and compare; nothing is written

Status 0: written, or equal. 1: a difference. 2: a wrong name, or no torch.
"""

import argparse
import sys

from costlib import observe


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m costlib.observe", description="Observe running models.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a bundle under costlib/data/observations, without .json")
    parser.add_argument("--check", action="store_true", help="compare with what is recorded, and write nothing")
    args = parser.parse_args(argv)
    try:
        observe.need()
    except observe.NotInstalled as missing:
        print(f"costlib.observe: {missing}", file=sys.stderr)
        return 2
    known = observe.bundles()
    if unknown := sorted(set(args.names) - known.keys()):
        print(f"costlib.observe: no bundle {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    names, wrong = args.names or list(known), {}
    for name in names:
        if args.check:
            if found := observe.compare(name):
                wrong[name] = found
        else:
            observe.write(name)
    if not args.names:
        wrong |= {name: "recorded, and no observer returns it" for name in observe.strangers()}
    for name, found in wrong.items():
        print(f"{name}: {found}")
    print(f"{len(names)} observations {'compared with their bundles' if args.check else 'recorded'}, {len(wrong)} to look at")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
