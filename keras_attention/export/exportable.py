"""A model that is ready for export: in float32, with endpoints and the cases to check them on."""

import dataclasses

import numpy as np

from keras_attention.export.checks.cases import make_cases, run_model
from keras_attention.export.checks.report import Signature
from keras_attention.export.endpoint import Endpoint, make_endpoint
from keras_attention.export.errors import ExportError
from keras_attention.export.precision import (
    check_stateless,
    convert_to_float32,
    list_reduced_policies,
)


@dataclasses.dataclass(frozen=True)
class CheckedEndpoint:
    """An endpoint, which becomes a signature of the file, and the cases it is checked on."""

    endpoint: Endpoint
    cases: list


@dataclasses.dataclass(frozen=True)
class Exportable:
    """A model ready to be exported.

    Attributes:
        model: computes in float32.
        checked: the endpoints of the file, a tuple of `CheckedEndpoint`.
        warnings: list of str, for the report.
        plan: `GenerationPlan` of a model that generates, or None.
    """

    model: object
    checked: tuple[CheckedEndpoint, ...]
    warnings: list
    plan: object = None

    @property
    def endpoints(self):
        return [one.endpoint for one in self.checked]

    @property
    def num_batches(self):
        """How many batches the file is checked on, over all signatures."""
        return sum(len(one.cases) for one in self.checked)

    @property
    def has_examples(self):
        """Whether cases are made of examples that the user gave."""
        return any(case.real for one in self.checked for case in one.cases)

    def describe_generation(self):
        """How the file generates, a dict for the report; None where it does not."""
        return self.plan and self.plan.describe(self.endpoints)

    def order_signatures(self, signatures):
        """Return the signatures of a file, with inputs and outputs in the model's order.

        Raises ExportError unless the file takes exactly the shapes that were asked for.
        """
        found = {signature.name: signature for signature in signatures}
        if set(found) != {endpoint.name for endpoint in self.endpoints}:
            raise ExportError(f"The file has the signatures {', '.join(found) or 'none'}.")
        return tuple(_order(found[endpoint.name], endpoint) for endpoint in self.endpoints)


def _order(signature, endpoint):
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    for wanted in endpoint.inputs:
        if inputs.get(wanted.name) != wanted:
            raise ExportError(f"Asked for {wanted}, the file has {inputs.get(wanted.name)}.")
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    if set(outputs) != set(endpoint.outputs):
        raise ExportError(f"The file has the outputs {', '.join(outputs)}.")
    ordered = tuple(outputs[name] for name in endpoint.outputs)
    return Signature(signature.name, endpoint.inputs, ordered)


def make_plain_exportable(model, batch_size, sequence_length, examples):
    """Return the `Exportable` of a model as it is: one endpoint, `serving_default`."""
    check_stateless(model)
    endpoint = make_endpoint(model, batch_size, sequence_length)
    exported = convert_to_float32(model)
    if exported is not model:
        endpoint = make_endpoint(exported, batch_size, sequence_length)
    cases, warnings = make_cases(exported, endpoint, examples)
    if exported is not model:
        warnings = [*warnings, _describe_difference(model, endpoint, cases)]
    return Exportable(exported, (CheckedEndpoint(endpoint, cases),), warnings)


def _describe_difference(model, endpoint, cases):
    """How far the model, in its own precision, is from the float32 copy that is exported."""
    own = dataclasses.replace(endpoint, call=make_endpoint(model).call)
    given = run_model(own, cases[0].inputs)
    error = max(
        float(np.abs(value.astype("float32") - cases[0].outputs[name]).max())
        for name, value in given.items()
    )
    policies = ", ".join(list_reduced_policies(model))
    return f"exported in float32; the model computes in {policies} and differs by {error:.1e}"
