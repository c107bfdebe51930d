"""Reports on single findings: a page for reviewers, a ready test for upstream, the case as JSON."""

from proofs.report.dossier import write_dossier, write_dossiers
from proofs.report.target_info import TargetInfo

__all__ = ["TargetInfo", "write_dossier", "write_dossiers"]
