"""What traced graphs contain, and what they leave behind."""

from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

_STATEFUL_RANDOM = frozenset(
    {
        *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "RandomShuffle"),
        *("ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "Multinomial"),
    }
)
_BRANCHES = ("body", "cond", "then_branch", "else_branch")
_CUSTOM_GRADIENT = "CustomGradient-"


def variables_of(graph: tf.Graph) -> list[tf.Variable]:
    """Return the variables that a function's graph uses, in the order in which it came upon them."""
    places = {id(tensor): place for place, tensor in enumerate(graph.external_captures)}
    return sorted(graph.variables, key=lambda variable: places.get(id(variable.handle), len(places)))


def draws_statefully(graph: tf.Graph) -> bool:
    """Return whether ``graph`` draws by operations whose seed is fixed when they are traced."""
    definition = graph.as_graph_def()
    functions = (function.node_def for function in definition.library.function)
    return any(node.op in _STATEFUL_RANDOM for nodes in (definition.node, *functions) for node in nodes)


def forget_gradients(graph: tf.Graph) -> None:
    """Let go of the custom gradients of ``graph``, whose own gradients have all been taken.

    TensorFlow keeps the function of every custom gradient that was ever traced, and with it the graph and
    the variables. Optimizers and common activations such as ``silu`` have some in each trace, so that
    memory would grow with every model. Functions that ``graph`` merely calls keep theirs: they may live on.
    """
    for node in _own_nodes(graph.as_graph_def()):
        name = node.attr["_gradient_op_type"].s.decode() if "_gradient_op_type" in node.attr else ""
        if name.startswith(_CUSTOM_GRADIENT):
            gradient_registry._registry.pop(name, None)


def _own_nodes(definition: tf.compat.v1.GraphDef) -> Iterator[tf.compat.v1.NodeDef]:
    """Yield the nodes of a graph and of the loops and branches in it."""
    functions = {function.signature.name: function.node_def for function in definition.library.function}
    waiting = [definition.node]
    while waiting:
        for node in waiting.pop():
            yield node
            called = [node.attr[branch].func for branch in _BRANCHES if branch in node.attr]
            called += node.attr["branches"].list.func if "branches" in node.attr else []
            waiting += [functions[branch.name] for branch in called if branch.name in functions]
