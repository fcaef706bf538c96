"""An agent's loop over OpenAI's SDK: each request carries the few tools that its turn needs.

OPENAI_API_KEY=… python examples/openai_agent.py "when is high tide in Bergen?"
"""

import json
import sys

from openai import OpenAI

from pegboard import Board, Call


def high_tide(harbour: str) -> str:
    """When the tide is high at a harbour"""
    return f"{harbour}: 04:05 and 16:20"


def renew_loan(book: str) -> str:
    """Renew the loan of a library book"""
    return f"{book}: renewed for three weeks"


def main(ask: str) -> str:
    with Board([high_tide, renew_loan], k=5) as board, OpenAI() as client:
        messages = [{"role": "user", "content": ask}]
        while True:
            decision = board.route_now(messages)
            answer = client.chat.completions.create(
                model="gpt-5.4", messages=messages, tools=decision.tools_for("openai")
            )
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls or ():
                wanted = Call(name=call.function.name, arguments=json.loads(call.function.arguments))
                result = board.execute_now(wanted, decision)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
            if not said.tool_calls:
                return said.content


if __name__ == "__main__":
    print(main(sys.argv[1]))
