"""`Exportable`: a float32 model with its endpoints, and test cases for each endpoint."""

import dataclasses

import keras
import numpy as np

from keras_attention.export.checks.cases import make_cases, run_model
from keras_attention.export.checks.report import Signature
from keras_attention.export.endpoint import Endpoint, make_endpoint, name_inputs
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


def make_joint_exportable(models, batch_size, sequence_length, examples):
    """Return the `Exportable` of several models in one file, with one endpoint for each.

    Args:
        models: dict from the name of each signature to a functional `keras.Model`.
        batch_size: a fixed size or None.
        sequence_length: a fixed size or None, for the models whose inputs have a dynamic length.
        examples: one batch or an iterable of batches. A batch is a dict with the inputs of all
            models. None makes random inputs.
    """
    exported, checked, warnings = {}, [], []
    for name, model in models.items():
        check_stateless(model)
        exported[name] = convert_to_float32(model)
        if exported[name] is not model:
            policies = ", ".join(list_reduced_policies(model))
            warnings.append(f"{name} is exported in float32. The model computes in {policies}")
    if examples is not None:
        examples = [examples] if isinstance(examples, dict) else list(examples)
    for endpoint in make_endpoints(exported, batch_size, sequence_length):
        own = None if examples is None else _take_inputs(examples, endpoint)
        cases, notes = make_cases(exported[endpoint.name], endpoint, own)
        checked.append(CheckedEndpoint(endpoint, cases))
        warnings += notes
    return Exportable(join_models(exported), tuple(checked), warnings)


def _take_inputs(examples, endpoint):
    """Return the batches of several models with only the inputs of one endpoint."""
    names = [tensor.name for tensor in endpoint.inputs]
    for batch in examples:
        if missing := [name for name in names if name not in batch]:
            raise ValueError(
                f"examples= has a batch with {', '.join(sorted(map(str, batch)))}, but "
                f"{endpoint.name} takes {', '.join(names)}. Pass {missing[0]}, too."
            )
    return [{name: batch[name] for name in names} for batch in examples]


def make_endpoints(models, batch_size=None, sequence_length=None):
    """Return a list with the `Endpoint` of each of several models.

    The arguments are those of `make_joint_exportable`. Raise a ValueError if `sequence_length` is
    given and no model has a dynamic length.
    """
    free = {
        name: any(None in tensor.shape[1:] for tensor in name_inputs(model).values())
        for name, model in models.items()
    }
    endpoints = []
    for name, model in models.items():
        length = sequence_length if free[name] or not any(free.values()) else None
        endpoint = make_endpoint(model, batch_size, length)
        endpoints.append(dataclasses.replace(endpoint, name=name))
    return endpoints


def list_models(model):
    """Return a list of the models to export: `model` itself, or the values if it is a dict."""
    return list(model.values()) if isinstance(model, dict) else [model]


def join_models(models):
    """Return one model with the inputs and outputs of several, so that it has all their weights.

    `models` is a dict from names to functional models.
    """
    inputs, outputs = [], []
    for name, model in models.items():
        own = keras.tree.map_structure(
            lambda x, name=name: keras.Input(
                batch_shape=x.shape, dtype=x.dtype, name=f"{name}_{x.name}"
            ),
            model.input,
        )
        inputs += keras.tree.flatten(own)
        outputs += keras.tree.flatten(model(own))
    return keras.Model(inputs, outputs, name="_".join(models))


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
