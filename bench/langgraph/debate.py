"""The debate of the source document as a LangGraph subgraph with its SQLite saver.

One critic against three decision makers, a shared opening, individual rounds, then scores: the same
protocol and the same message lengths as ours, a model that answers at once, a checkpoint after every
step. Prints one JSON object: calls, CPU seconds, bytes in SQLite.
"""

import argparse
import asyncio
import json
import os
import resource
import tempfile
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

DECISION_MAKERS = ["D1", "D2", "D3"]
METRICS = ["impact", "feasibility", "risk_adjusted_return", "strategic_alignment"]


class Debate(TypedDict):
    move_document: dict
    ticker: str
    i1: list
    i2: list
    i3: list
    current_round: int
    max_rounds: int
    scores: dict
    total_score: int


calls = 0
written = 0


async def call_llm(prompt: str, answer: str) -> str:
    global calls, written
    calls += 1
    written += len(answer)
    await asyncio.sleep(0)
    return answer


def transcript(log: list) -> str:
    lines = [f"**[Round {entry['round']}] {entry['role']}:**\n{entry['content']}" for entry in log]
    return "\n\n---\n\n".join(lines)


def build(message: str):
    async def opening(state: Debate) -> dict:
        text = await call_llm(f"Here is a proposed move for {state['ticker']}:\n{state['move_document']['content']}", message)
        entry = {"role": "critic", "content": text, "round": 1}
        return {"i1": [entry], "i2": [entry], "i3": [entry], "current_round": 1}

    async def answers(state: Debate, role, new_round: int) -> dict:
        async def one(key: str, decision_maker: str):
            prompt = f"{state['move_document']['content']}\n{transcript(state[key])}"
            text = await call_llm(prompt, message)
            return key, {"role": role or decision_maker, "content": text, "round": new_round}

        done = await asyncio.gather(*(one(f"i{n + 1}", dm) for n, dm in enumerate(DECISION_MAKERS)))
        return {key: state[key] + [entry] for key, entry in done}

    async def dm_respond(state: Debate) -> dict:
        return await answers(state, None, state["current_round"])

    async def critic_individual(state: Debate) -> dict:
        new_round = state["current_round"] + 1
        return {**await answers(state, "critic", new_round), "current_round": new_round}

    async def score_move(state: Debate) -> dict:
        card = json.dumps({metric: 7 for metric in METRICS} | {"reasoning": "demonstration"})

        async def one(key: str):
            return json.loads(await call_llm(transcript(state[key]), card))

        cards = await asyncio.gather(*(one(f"i{n + 1}") for n in range(3)))
        total = sum(card[metric] for card in cards for metric in METRICS)
        return {"scores": dict(zip(DECISION_MAKERS, cards)), "total_score": total}

    builder = StateGraph(Debate)
    builder.add_node("opening", opening)
    builder.add_node("dm_respond", dm_respond)
    builder.add_node("critic_individual", critic_individual)
    builder.add_node("score_move", score_move)
    builder.add_edge(START, "opening")
    builder.add_edge("opening", "dm_respond")
    more = lambda state: "score_move" if state["current_round"] >= state["max_rounds"] else "critic_individual"
    builder.add_conditional_edges("dm_respond", more)
    builder.add_edge("critic_individual", "dm_respond")
    builder.add_edge("score_move", END)
    return builder


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--message-bytes", type=int, default=1000)
    parser.add_argument("--move-bytes", type=int, default=3000)
    args = parser.parse_args()
    words = "evidence and objection, answer and doubt; " * 1000
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoints.db")
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            graph = build(words[: args.message_bytes]).compile(checkpointer=saver)
            before = resource.getrusage(resource.RUSAGE_SELF)

            async def debate(number: int) -> int:
                state = {
                    "move_document": {"move_id": f"m{number}", "content": words[: args.move_bytes]},
                    "ticker": "HLXI", "i1": [], "i2": [], "i3": [],
                    "current_round": 0, "max_rounds": args.rounds, "scores": {}, "total_score": 0,
                }
                config = {"configurable": {"thread_id": f"m{number}"}, "recursion_limit": 200}
                return (await graph.ainvoke(state, config))["total_score"]

            totals = await asyncio.gather(*(debate(number + 1) for number in range(args.moves)))
            after = resource.getrusage(resource.RUSAGE_SELF)
            assert totals == [84] * args.moves, totals
            rows = await (await saver.conn.execute("PRAGMA page_count")).fetchone()
            size = await (await saver.conn.execute("PRAGMA page_size")).fetchone()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"calls": calls, "cpu_seconds": cpu, "sqlite_bytes": rows[0] * size[0], "model_bytes": written}))


asyncio.run(main())
