# omniidl's listing of each of many files, without starting omniidl for each of them:
#
#     omniidl -p interop/omniidl -b each OPTION… -WbFILE -WbFILE… - < /dev/null
#
# The files are arguments of the back end. A copy of this process reads each, as a compilation leaves
# its state behind. For each file standard output has a line with the exit status and the lengths of
# the listing and of the errors in octets, and then these two.
#
# SPDX-License-Identifier: MIT OR Apache-2.0

import os
import sys
import tempfile
import traceback

import _omniidl
from omniidl import idlast, idltype, main


def run(tree, args):
    for file in args:
        with tempfile.TemporaryFile() as listing, tempfile.TemporaryFile() as errors:
            child = os.fork()
            if child == 0:
                os.dup2(listing.fileno(), sys.stdout.fileno())
                os.dup2(errors.fileno(), sys.stderr.fileno())
                os._exit(status_of(file))
            _, status = os.waitpid(child, 0)
            texts = []
            for text in (listing, errors):
                text.seek(0)
                texts.append(text.read())
            head = f"{status} {len(texts[0])} {len(texts[1])}\n".encode()
            sys.stdout.buffer.write(head + b"".join(texts))
            sys.stdout.buffer.flush()


def status_of(file):
    # As omniidl does between files.
    idlast.clear()
    idltype.clear()
    _omniidl.clear()
    main.backends.clear()
    main.backends_args.clear()
    try:
        main.main(["omniidl", "-b", "listing", file])
        status = 0
    except SystemExit as exit:
        status = exit.code
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status
