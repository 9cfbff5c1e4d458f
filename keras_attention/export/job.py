"""What both formats have in common: the model, its endpoint, and the cases it is checked on."""

import dataclasses

import numpy as np

from keras_attention.export import cases as cases_module
from keras_attention.export import endpoint as endpoint_module
from keras_attention.export import precision
from keras_attention.export.errors import ExportError
from keras_attention.export.report import Signature


@dataclasses.dataclass(frozen=True)
class Job:
    """A model ready to be exported; `model` computes in float32."""

    model: object
    endpoint: endpoint_module.Endpoint
    cases: list
    warnings: list

    def check_shapes(self, signatures):
        """Raises ExportError unless the file takes exactly the shapes that were asked for.

        Returns:
            The signatures, with inputs and outputs in the model's order.
        """
        found = {signature.name: signature for signature in signatures}
        if set(found) != {self.endpoint.name}:
            raise ExportError(f"The file has the signatures {', '.join(found) or 'none'}.")
        entry = found[self.endpoint.name]
        inputs = {tensor.name: tensor for tensor in entry.inputs}
        for wanted in self.endpoint.inputs:
            if inputs.get(wanted.name) != wanted:
                raise ExportError(f"Asked for {wanted}, the file has {inputs.get(wanted.name)}.")
        outputs = {tensor.name: tensor for tensor in entry.outputs}
        if set(outputs) != set(self.endpoint.outputs):
            raise ExportError(f"The file has the outputs {', '.join(outputs)}.")
        ordered = tuple(outputs[name] for name in self.endpoint.outputs)
        return (Signature(entry.name, self.endpoint.inputs, ordered),)


def prepare(model, *, batch_size, sequence_length, examples):
    """Makes the job: the model in float32, its endpoint, and the model's answers to compare."""
    endpoint = endpoint_module.of(model, batch_size, sequence_length)
    exported = precision.in_float32(model)
    if exported is not model:
        endpoint = endpoint_module.of(exported, batch_size, sequence_length)
    cases, warnings = cases_module.of(exported, endpoint, examples)
    if exported is not model:
        warnings = [*warnings, _reduced(model, endpoint, cases)]
    return Job(exported, endpoint, cases, warnings)


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
