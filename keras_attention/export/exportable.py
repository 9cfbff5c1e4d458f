"""`Exportable`: a float32 model with its endpoints, and test cases for each endpoint."""

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
    """An `Endpoint`, which becomes a signature of the file, and the list of its test `Case`s."""

    endpoint: Endpoint
    cases: list


@dataclasses.dataclass(frozen=True)
class Exportable:
    """A model that is ready to be exported.

    Attributes:
        model: the model, in float32.
        checked: tuple of `CheckedEndpoint`, one for each signature.
        warnings: list of str, for the report.
        plan: `GenerationPlan`, which says how a program generates text or images with the exported
            signatures, or None for other models.
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
        """Return the number of test batches of all signatures together."""
        return sum(len(one.cases) for one in self.checked)

    @property
    def has_examples(self):
        """Return whether some test cases are the user's examples, and not random inputs."""
        return any(case.real for one in self.checked for case in one.cases)

    def describe_generation(self):
        """Return the entry `generation` of the report, a dict with special ids, lengths and cache.

        Return None if the model does not generate text.
        """
        return self.plan and self.plan.describe(self.endpoints)

    def order_signatures(self, signatures):
        """Return the signatures of a file in the order of the endpoints.

        The inputs and outputs of each signature are in the order of its endpoint, too.

        Args:
            signatures: list of `Signature`, as read from the file.

        Raises:
            ExportError: the file does not have exactly the requested signatures and shapes.
        """
        by_name = {signature.name: signature for signature in signatures}
        if set(by_name) != {endpoint.name for endpoint in self.endpoints}:
            raise ExportError(
                f"The file has the signatures {', '.join(by_name) or 'none'}, not "
                f"{', '.join(endpoint.name for endpoint in self.endpoints)}."
            )
        return tuple(_order(by_name[endpoint.name], endpoint) for endpoint in self.endpoints)


def _order(signature, endpoint):
    inputs = {tensor.name: tensor for tensor in signature.inputs}
    for tensor in endpoint.inputs:
        if inputs.get(tensor.name) != tensor:
            raise ExportError(f"The file has {inputs.get(tensor.name)}. Expected {tensor}.")
    outputs = {tensor.name: tensor for tensor in signature.outputs}
    if set(outputs) != set(endpoint.outputs):
        raise ExportError(
            f"The file has the outputs {', '.join(outputs)}, not {', '.join(endpoint.outputs)}."
        )
    ordered = tuple(outputs[name] for name in endpoint.outputs)
    return Signature(signature.name, endpoint.inputs, ordered)


def make_plain_exportable(model, batch_size, sequence_length, examples):
    """Return the `Exportable` of a model with one endpoint, `serving_default`.

    `batch_size` and `sequence_length` are fixed sizes or None, and `examples` the user's examples.
    """
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
    """Return a str, a warning with the difference between a model and its float32 copy.

    `endpoint` and `cases` are the endpoint of the float32 copy and its test cases.
    """
    own = dataclasses.replace(endpoint, call=make_endpoint(model).call)
    outputs = run_model(own, cases[0].inputs)
    error = max(
        float(np.abs(value.astype("float32") - cases[0].outputs[name]).max())
        for name, value in outputs.items()
    )
    policies = ", ".join(list_reduced_policies(model))
    return f"exported in float32. The model computes in {policies} and differs by {error:.1e}"
