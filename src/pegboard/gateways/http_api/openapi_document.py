"""The OpenAPI document of the HTTP API (OpenAPI 3.1), made from its bodies and answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from pegboard.gateways.http_api.api_messages import ANSWERS, BODIES, ErrorAnswer

PATH = "/v1/openapi.json"
SUMMARIES = {
    "/v1/route": "The tools of a turn",
    "/v1/search": "A search for tools, skills, prompts and resources",
    "/v1/outcome": "How a call ended",
}
ERRORS = {
    "400": "The body cannot be read, or contradicts itself",
    "401": "No token, or one that is not accepted",
    "403": "The token lacks a scope, or the origin is not allowed",
    "404": "No such toolset, tool or turn",
    "413": "The body is too large",
    "422": "The tools cannot be read",
    "429": "A rate of requests is reached; `Retry-After` says in how many seconds to try again",
    "503": "The issuer of tokens does not answer",
}


def openapi_document(version: str) -> dict[str, Any]:
    """The document of this version of Pegboard."""
    answers: list[type[BaseModel]] = [each for each in ANSWERS.values() if each is not None]
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(each, "validation") for each in BODIES.values()]
    sent: list[type[BaseModel]] = [*answers, ErrorAnswer]
    models.extend((each, "serialization") for each in sent)
    schemas, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
    named = {model: schema for (model, _), schema in schemas.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pegboard",
            "version": version,
            "description": "Gives an LLM agent, at every turn, only the tools it needs.",
        },
        "paths": {
            path: {"post": _operation(path, named[body], None if answer is None else named[answer])}
            for (path, body), answer in zip(BODIES.items(), ANSWERS.values(), strict=True)
        },
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(path: str, body: Any, answer: Any) -> dict[str, Any]:
    done = {"200": _json("Done", answer)} if answer else {"204": {"description": "Counted"}}
    error = {"$ref": "#/components/schemas/ErrorAnswer"}
    errors = {status: _json(text, error) for status, text in ERRORS.items()}
    errors["429"] = errors["429"] | {"headers": {"Retry-After": {"schema": {"type": "integer"}}}}
    return {
        "operationId": path.rpartition("/")[2],
        "summary": SUMMARIES[path],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": done | errors,
    }


def _json(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
