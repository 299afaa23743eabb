"""Uses `moothall mcp` as an agent would, with the Python client of the Model Context Protocol.

    client.py WORKSPACE COMMAND…     MCP_CHECK_URL and MCP_CHECK_TOKEN: the same server over HTTP
"""

import asyncio
import os
import pathlib
import sys

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

WORKSPACE = pathlib.Path(sys.argv[1])
COMMAND = sys.argv[2:]
BEFORE = "import sys\n\n\ndef main():\n    print(sys.argv)\n"
AFTER = BEFORE.replace(
    "    print(sys.argv)", '    if "--version" in sys.argv:\n        print("1.0")\n    print(sys.argv)'
)
LONG = "".join(f"value_{number} = {number}\n" for number in range(40))
SHORT = "value_0 = 0\n"
# What the person at the client says, and what becomes of the draft.
SAID = {"approve": "accepted", "reject": "rejected", "later": "escalated", "decline": "escalated"}


def transport(kind):
    if kind == "stdio":
        environment = {"HOME": os.environ["HOME"], "USER": os.environ["USER"], "PATH": os.environ["PATH"]}
        return stdio_client(StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment))
    headers = {"Authorization": f"Bearer {os.environ['MCP_CHECK_TOKEN']}"}
    return streamable_http_client(os.environ["MCP_CHECK_URL"], http_client=httpx2.AsyncClient(headers=headers, timeout=60))


async def does(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result)
    return result.structured_content


async def pattern(client, task):
    """The calls of the sandbox draft pattern, one after the other."""
    (WORKSPACE / "src/watchdog.py").write_text(BEFORE)
    draft = await does(client, "ollama_request_draft", source_path="src/watchdog.py", task_id=task)
    path = draft["draft_path"]
    assert draft["line_count"] == 5 and len(draft["original_hash"]) == 64, draft
    written = await does(client, "ollama_write_draft", draft_path=path, content=AFTER)
    assert written["success"] and len(written["new_hash"]) == 64, written
    read = await does(client, "ollama_read_draft", draft_path=path)
    assert read["content"] == AFTER, read
    told = await does(
        client,
        "ollama_submit_draft",
        draft_path=path,
        original_path="src/watchdog.py",
        task_id=task,
        change_summary="Added --version/-v flag handling in main()",
    )
    assert told["submitted"] and told["message_id"] and told["decision"] == "accepted", told
    assert (WORKSPACE / "src/watchdog.py").read_text() == AFTER


async def neutral(client, task):
    """A refusal that teaches, an edit, a check, a rejection, a resource, and giving up."""
    (WORKSPACE / "src/watchdog.py").write_text(BEFORE)
    refused = await client.call_tool("draft_request", {"source_path": "../x", "task_id": task})
    assert refused.is_error and "hint:" in refused.content[0].text, refused
    draft = (await does(client, "draft_request", source_path="src/watchdog.py", task_id=task))["draft_id"]
    await does(client, "draft_edit", draft_id=draft, old="print(sys.argv)", new="...  # rest of the code unchanged")
    checked = await does(client, "draft_check", draft_id=draft)
    assert checked["action"] == "reject", checked
    told = await does(client, "draft_submit", draft_id=draft, change_summary="lazy")
    assert told["decision"] == "rejected", told
    read = await client.read_resource(f"moothall://draft/{draft}/diff")
    assert "+    ...  # rest" in read.contents[0].text, read
    assert [one["draft_id"] for one in (await does(client, "draft_list"))["drafts"]] == [draft]
    gone = await does(client, "draft_discard", draft_id=draft)
    assert gone["state"] == "withdrawn", gone


async def person(kind, mode, said):
    """A person decides in a form of the client, in every era."""

    async def answer(context, params):
        if said == "decline":
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"decision": said})

    (WORKSPACE / "big.py").write_text(LONG)
    async with Client(transport(kind), mode=mode, elicitation_callback=answer) as client:
        task = f"{kind}-{mode}-{said}"
        draft = (await does(client, "draft_request", source_path="big.py", task_id=task))["draft_id"]
        await does(client, "draft_write", draft_id=draft, content=SHORT)
        told = await does(client, "draft_submit", draft_id=draft, change_summary="less")
        assert told["decision"] == SAID[said], (kind, mode, said, told)
        applied = (WORKSPACE / "big.py").read_text() == SHORT
        assert applied == (said == "approve")
        if told["decision"] == "escalated":
            status = await does(client, "draft_status", draft_id=draft, wait_s=1)
            assert status["state"] == "escalated", status
            await does(client, "draft_discard", draft_id=draft)


async def main():
    for kind in ("stdio", "http"):
        for mode in ("legacy", "auto", "2026-07-28"):
            async with Client(transport(kind), mode=mode) as client:
                await pattern(client, f"pattern-{kind}-{mode}")
                await neutral(client, f"neutral-{kind}-{mode}")
            for said in SAID:
                await person(kind, mode, said)
            print(f"python, {kind}, {mode}: the draft pattern, refusals, resources, {len(SAID)} decisions")


asyncio.run(main())
