"""Runs of the reference for tests of the relation."""

from __future__ import annotations

from impl.faults.switches import FAULTS
from spec.claims.texts import LOOP_CLAIMS
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.relation.runs.outside import why_not_covered
from tests.support.mutated_scenarios import SCENARIOS

_RESET_OF_AN_ITEM = Scenario(
    EngineConfig(2, 2, 2, 16, is_encoder_decoder=True),
    (ScenarioRequest(1, (Feature(0, 2, "A"),), max_tokens=3),),
    resets=(1,),
)
"""Between two steps of an encoder-decoder request."""


def fixed_scenarios() -> list[Scenario]:
    """Scenarios of switches and claims that the relation is about."""
    found = [fault.scenario for fault in FAULTS if fault.scenario is not None]
    found += [claim.witness for claim in LOOP_CLAIMS.values()] + list(SCENARIOS.values())
    found.append(_RESET_OF_AN_ITEM)
    return [scenario for scenario in dict.fromkeys(found) if why_not_covered(scenario) is None]
