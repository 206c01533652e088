"""``advisor recommend --no-training``: the rule of thumb, from the measurement alone."""

from dataclasses import replace

from advisor.analysis.rule_of_thumb import rule_of_thumb as from_throughput
from advisor.errors import InconclusiveError
from advisor.records.recommendation import RuleOfThumb
from advisor.records.requests import RecommendRequest
from advisor.workflows.measure import ensure_measured
from advisor.workflows.tools import SessionKeeper, Tools, describe


def rule_of_thumb(tools: Tools, request: RecommendRequest) -> RuleOfThumb:
    """Measure what is missing, and name the largest batch size that the hardware supports.

    The workload needs no target. Raises :class:`~advisor.errors.InconclusiveError` where none of the batch
    sizes asked for could be trained.
    """
    with SessionKeeper(tools.sessions) as keeper:
        description = describe(tools, keeper)
        measure = replace(request.measure, batch_sizes=request.batch_sizes)
        throughput = ensure_measured(tools, keeper, description, measure)
    command = " ".join(["advisor recommend", *filter(None, [request.workload_argument])])
    found = from_throughput(throughput, request.batch_sizes, command)
    if found is None:
        why = next((row.detail.splitlines()[0] for row in throughput.table if row.detail), "")
        raise InconclusiveError(f"None of the batch sizes asked for could be trained. {why}".strip())
    return found
