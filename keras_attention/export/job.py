"""What both formats have in common: the model, its endpoints, and the cases they are checked on."""

import dataclasses

import numpy as np

from keras_attention.export import cases as cases_module
from keras_attention.export import endpoint as endpoint_module
from keras_attention.export import precision
from keras_attention.export.errors import ExportError
from keras_attention.export.report import Signature


@dataclasses.dataclass(frozen=True)
class Point:
    """An endpoint, which becomes a signature of the file, and the cases it is checked on."""

    endpoint: endpoint_module.Endpoint
    cases: list


@dataclasses.dataclass(frozen=True)
class Job:
    """A model ready to be exported.

    Attributes:
        model: computes in float32.
        points: what becomes of it.
        warnings: things to know.
        generation: `generative.Generation` of one that generates, or None.
    """

    model: object
    points: tuple[Point, ...]
    warnings: list
    generation: object = None

    @property
    def endpoints(self):
        return [point.endpoint for point in self.points]

    @property
    def batches(self):
        """How many batches the file is checked on, over all signatures."""
        return sum(len(point.cases) for point in self.points)

    def check_shapes(self, signatures):
        """Raises ExportError unless the file takes exactly the shapes that were asked for.

        Returns:
            The signatures, with inputs and outputs in the model's order.
        """
        found = {signature.name: signature for signature in signatures}
        if set(found) != {endpoint.name for endpoint in self.endpoints}:
            raise ExportError(f"The file has the signatures {', '.join(found) or 'none'}.")
        return tuple(_ordered(found[endpoint.name], endpoint) for endpoint in self.endpoints)


def _ordered(signature, endpoint):
    """`signature` as the endpoint orders it, or an ExportError where it is another one."""
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    for wanted in endpoint.inputs:
        if inputs.get(wanted.name) != wanted:
            raise ExportError(f"Asked for {wanted}, the file has {inputs.get(wanted.name)}.")
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    if set(outputs) != set(endpoint.outputs):
        raise ExportError(f"The file has the outputs {', '.join(outputs)}.")
    ordered = tuple(outputs[name] for name in endpoint.outputs)
    return Signature(signature.name, endpoint.inputs, ordered)


def prepare(model, *, batch_size, sequence_length, examples):
    """Makes the job: the model in float32, its endpoint, and the model's answers to compare."""
    endpoint = endpoint_module.of(model, batch_size, sequence_length)
    exported = precision.in_float32(model)
    if exported is not model:
        endpoint = endpoint_module.of(exported, batch_size, sequence_length)
    cases, warnings = cases_module.of(exported, endpoint, examples)
    if exported is not model:
        warnings = [*warnings, _reduced(model, endpoint, cases)]
    return Job(exported, (Point(endpoint, cases),), warnings)


def _reduced(model, endpoint, cases):
    """How far the model, in its own precision, is from the float32 copy that is exported."""
    own = dataclasses.replace(endpoint, call=endpoint_module.of(model).call)
    given = cases_module.run(own, cases[0].inputs)
    error = max(
        float(np.abs(value.astype("float32") - cases[0].outputs[name]).max())
        for name, value in given.items()
    )
    policies = ", ".join(precision.reduced(model))
    return f"exported in float32; the model computes in {policies} and differs by {error:.1e}"
