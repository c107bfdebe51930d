"""The process that forks for each process that is to run a release's source.

The solvers take a second to import. This process does so once and runs nothing of a release: each
fork of it reads one release, and answers questions over pipes of its own.
"""

from __future__ import annotations

import gc
import json
import os
import socket
from typing import NoReturn

from impl.process_tree import end_with_linux
from proofs.source.child import serve

DESCRIPTORS = 3
"""That are sent for a fork: where it reads questions, where it writes answers, where it prints."""

MOST_BYTES = 64
"""Of a message, which is a line of JSON: ``null`` for a fork, answered by the number of its
process; and such a number, answered by the exit code once it has ended."""


def main(connection: int, parent: int) -> NoReturn:
    """Fork until the parent is gone.

    Args:
        connection: descriptor of a socket whose other end the parent has.
        parent: number of its process.
    """
    end_with_linux(parent)
    gc.collect()
    gc.freeze()  # The collector would write to the pages that forks share.
    with socket.socket(fileno=connection) as line:
        while True:
            message, descriptors, _, _ = socket.recv_fds(line, MOST_BYTES, DESCRIPTORS)
            if not message:
                os._exit(0)
            process = json.loads(message)
            if process is None:
                process = _forked(line, *descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)
                answer = process
            else:
                answer = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            line.sendall(json.dumps(answer).encode())


def _forked(line: socket.socket, questions: int, answers: int, log: int) -> int:
    origin = os.getpid()
    process = os.fork()
    if process == 0:
        line.close()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        end_with_linux(origin)
        serve(questions, answers)
    return process
