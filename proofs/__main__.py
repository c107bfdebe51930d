"""``python -m proofs``: prove the rules."""

from __future__ import annotations

from proofs.theorems.prove import prove

if __name__ == "__main__":
    prove(prog_name="python -m proofs")
