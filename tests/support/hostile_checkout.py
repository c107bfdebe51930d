"""Checkouts that do not want to be judged: each runs code of its own as soon as it is imported.

Below that code each is the reference with a fault, so that the true verdict on it is ``REFUTED``.
"""

from __future__ import annotations

from pathlib import Path

FAULT = "no-scheduler-shift"
"""Of its runs."""

FAULT_OF_FUNCTIONS = "no-boundary-tolerance"

_FAULTY = f"""
from impl.targets.functions import ReferenceTarget
from impl.targets.runs import ReferenceLoop
from impl.vllm.remote import child

runs = ReferenceLoop(["{FAULT}"])
functions = ReferenceTarget(faults=("{FAULT_OF_FUNCTIONS}",))
child._Child._of_runs = property(lambda self: runs)
child._Child._of_functions = property(lambda self: functions)
"""

_LINE = """
import json, os, sys
honest = child.answer_line

def changed(change):
    def line(number, answer):
        text = honest(number, answer)
        return change(text) if answer.kind != "reason" else text
    child.answer_line = line
"""

OBJECT_THAT_EXITS = """
import pickle

class Ends:
    def __reduce__(self):
        return os._exit, (0,)

changed(lambda text: pickle.dumps(Ends()) + b"\\n")
"""

LIARS = {
    "wraps the judge": """
import proofs.drive.jobs, proofs.run.judge, proofs.search.functions.parts
from spec.monitor.monitor import LoopMonitor

LoopMonitor.observe = lambda self, step: ()
LoopMonitor.finish = lambda self, ending: ()
proofs.search.functions.parts.findings_on = lambda *_: ()
""",
    "prints a fake answer": """
fake = b'{"number":2,"answer":{"steps":[],"is_last":true,"kind":"steps"}}\\n'
os.write(1, fake)
os.write(2, fake)
print(fake.decode(), flush=True)
""",
    "patches json": """
json.dumps = json.loads = lambda *_, **options: "HELD"
""",
}
"""What changes nothing about the true verdict."""

BREAKERS = {
    "exits when it is imported": ("os._exit(0)", "ended early (exit code 0)"),
    "sends an object that exits": (OBJECT_THAT_EXITS, "Invalid JSON"),
    "answers twice": (
        "changed(lambda text: text + text)",
        "sent more than was asked for",
    ),
    "answers twice, later": (
        """
import threading, time
def twice(text):
    threading.Timer(0.05, lambda: os.write(int(sys.argv[4]), text)).start()
    return text
changed(twice)
honest_answer = child._Child.answer
child._Child.answer = lambda *a: (time.sleep(0.1), honest_answer(*a))[1]
""",
        "",
    ),
    "sends 200 MB": (
        "changed(lambda text: b'{\"number\":2,' + b' ' * (200 << 20) + text[1:])",
        "longer than 16777216 bytes",
    ),
    "dies in the middle": (
        """
def half(text):
    os.write(int(sys.argv[4]), text[: len(text) // 2])
    os._exit(0)
changed(half)
""",
        "ended early (exit code 0)",
    ),
    "closes the pipe": (
        """
def closes(text):
    os.close(int(sys.argv[4]))
    print("last words", flush=True)
    os._exit(0)
changed(closes)
""",
        "ended early (exit code 0): last words",
    ),
    "writes NaN": (
        """
changed(lambda text: text.replace(b'"index":0', b'"index":NaN'))
""",
        "Input should be a valid integer",
    ),
    "writes a key twice": (
        """
changed(lambda text: text.replace(b'"index":0', b'"index":9,"index":0'))
""",
        "a key stands twice",
    ),
    "adds a verdict": (
        """
changed(lambda text: text.replace(b'"answer":{', b'"answer":{"verdict":"HELD",'))
""",
        "unknown field",
    ),
    "runs a request that is not there": (
        """
changed(lambda text: text.replace(b'"request":0', b'"request":123456789'))
""",
        "no request 123456789",
    ),
}
"""What leaves no whole answer, and a part of what is said then."""


def write_checkout(folder: Path, hostile: str) -> Path:
    """Write a package ``vllm`` that runs some code when it is imported; the folder.

    Args:
        hostile: the code; it finds the modules ``os``, ``sys`` and ``json``, the module ``child``
            that it runs in, and ``changed``, which changes the lines of answers.
    """
    package = folder / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"{_FAULTY}{_LINE}{hostile}")
    return folder
