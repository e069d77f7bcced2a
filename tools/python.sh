#!/bin/sh
# Prints a Python fit for the course (3.11 to 3.13, able to make an environment),
# or says in one sentence what was found and what to install.
# $PYTHON, where set, is the only candidate.

probe='
import sys
version = sys.version_info[:3]
if not (3, 11) <= version[:2] <= (3, 13):
    print("unfit", "%d.%d.%d" % version)
else:
    try:
        import ensurepip, venv
        print("fit", sys.executable)
    except ImportError:
        print("bare", "%d.%d" % version[:2])
'

set -- ${PYTHON:+"$PYTHON"}
[ $# -gt 0 ] || set -- python3 python3.13 python3.12 python3.11

unfit= bare=
for candidate; do
    answer=$("$candidate" -c "$probe" 2>/dev/null) || continue
    value=${answer#* }
    case $answer in
        fit*) printf '%s\n' "$value"; exit 0 ;;
        bare*) bare=${bare:-"$candidate $value"} ;;
        unfit*) unfit=${unfit:-"$candidate is $value"} ;;
    esac
done

if [ -n "$bare" ]; then
    echo "${bare% *} has no venv module with ensurepip: install it (Debian, Ubuntu: apt install python${bare##* }-venv)." >&2
else
    echo "The course needs Python 3.11, 3.12 or 3.13 and found ${unfit:-none (tried: $*)}:" \
         "install one (Debian, Ubuntu: apt install python3 python3-venv, or python3.12 python3.12-venv)" \
         "or name one with PYTHON=/path/to/python." >&2
fi
exit 1
