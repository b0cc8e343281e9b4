"""Valid and invalid requests: the service never fails, and its answers match its OpenAPI description."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 10


def never_ending(app: Any) -> Any:
    """Ignore the lifespan events of an application: schemathesis starts and stops it for every call."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})

    return call


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_makes_the_service_fail(client: Any, mode: GenerationMode) -> None:
    count = 0
    described = schemathesis.openapi.from_asgi("/openapi.json", never_ending(client.app))
    for result in described.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            nonlocal count
            count += 1
            case.call_and_validate(checks=CHECKS)

        if mode.is_positive or operation.body or operation.query or operation.path_parameters:
            ask()
    assert count > 20
