#!/usr/bin/env python3
"""Record docs/examples/first-ten-minutes.sh as an animated SVG.

    MOOTHALL_BIN=… tools/recording/record.py [OUTPUT]

tmux is the terminal: while the script types, this program captures the screen several times per
second. A line of the screen that stays the same becomes one text element that is visible for that
time. Needs Python 3.9 and tmux, and nothing else.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs/examples/first-ten-minutes.sh"
OUTPUT = ROOT / "docs/src/first-ten-minutes.svg"

COLUMNS, ROWS = 80, 24
INTERVAL = 0.25  # seconds between captures
LONGEST_STILL = 3.0  # seconds that an unchanged screen is shown
LAST_STILL = 4.0
MAX_BYTES = 300_000

CELL, LINE, FONT, MARGIN = 8.4, 18, 14, 14

STYLE = """
rect{fill:var(--b);stroke:var(--e)}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--f);white-space:pre}
svg{--b:#fff;--e:#d0d7de;--f:#1f2328;--r:#b91c1c;--g:#15703a;--y:#8a5a00;--c:#0b6a86;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--b:#0d1117;--e:#30363d;--f:#e6edf3;--r:#ff7b72;--g:#56d364;--y:#e3b341;--c:#76e3ea}}
.b{font-weight:700}.d{opacity:.68}.r{fill:var(--r)}.g{fill:var(--g)}.y{fill:var(--y)}.c{fill:var(--c)}
.h{visibility:hidden}
@media(prefers-reduced-motion:reduce){text{animation:none!important}}
""".strip().replace("\n", "")

COLOURS = {31: "r", 91: "r", 32: "g", 92: "g", 33: "y", 93: "y", 36: "c", 96: "c"}


def record(socket):
    """Play the script; return screens with the time since the start."""
    environment = dict(os.environ, RECORDING_SOCKET=socket)
    play = subprocess.Popen(["bash", str(SCRIPT)], env=environment, stdout=sys.stderr)
    capture = ["tmux", "-S", socket, "capture-pane", "-e", "-p", "-t", "session"]
    screens, start = [], time.monotonic()
    while play.poll() is None:
        shown = subprocess.run(capture, capture_output=True, text=True)
        if shown.returncode == 0:
            screens.append((time.monotonic() - start, shown.stdout.split("\n")[:ROWS]))
        time.sleep(INTERVAL)
    if play.returncode != 0:
        sys.exit(f"{SCRIPT.name} failed with exit code {play.returncode}")
    return screens


def without_long_stills(screens):
    """Drop repeated screens; shorten the time in which nothing changes."""
    frames, now, last = [], 0.0, None
    for at, lines in screens:
        if last is None or lines != frames[-1][1]:
            now += 0 if last is None else min(at - last, LONGEST_STILL)
            frames.append((now, lines))
            last = at
    return frames, now + LAST_STILL


def runs(line, codes):
    """Split a captured line into (column, classes, text). tmux continues the style of the line before."""
    found, column = [], 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            for code in (int(code or 0) for code in part[2:-1].split(";")):
                if code == 0:
                    codes.clear()
                elif code == 1:
                    codes.add("b")
                elif code == 2:
                    codes.add("d")
                elif code == 22:
                    codes.difference_update("bd")
                elif code == 39 or code in COLOURS:
                    codes.difference_update(COLOURS.values())
                    codes.update(COLOURS.get(code, ""))
        elif part:
            found.append((column, " ".join(sorted(codes)), part))
            column += len(part)
    return found


def texts_of(lines):
    """The SVG of each line of a screen."""
    codes = set()
    return [text_of(line, codes) for line in lines]


def text_of(line, codes):
    """The SVG of one line: each run has its own position, so that every font is aligned."""
    parts = []
    for column, classes, text in runs(line, codes):
        stripped = text.lstrip(" ")
        if not stripped.strip():
            continue
        column += len(text) - len(stripped)
        text = html.escape(stripped.rstrip(" "), quote=False)
        name = f' class="{classes}"' if classes else ""
        parts.append(f'<tspan x="{MARGIN + column * CELL:g}"{name}>{text}</tspan>')
    return "".join(parts)


def spans(frames, end):
    """Yield (row, line, from, to) for every line and the time it stays."""
    shown = {}
    for at, lines in frames:
        texts = texts_of(lines)
        for row in range(ROWS):
            line = texts[row] if row < len(texts) else ""
            before = shown.get(row)
            if before and before[0] == line:
                continue
            if before and before[0]:
                yield row, before[0], before[1], at
            shown[row] = (line, at)
    for row, (line, since) in shown.items():
        if line:
            yield row, line, since, end


def render(frames, end):
    found = sorted(spans(frames, end), key=lambda span: (span[2], span[0]))
    # Shown where nothing moves: the live view of the consultation, when it shows the most.
    board = [at for at, lines in frames if any("debate" in line and "▸" in line for line in lines)]
    poster = board[len(board) * 2 // 3] if board else end
    names, keyframes, body = {}, [], []
    for row, line, since, until in found:
        key = (round(since * 100 / end, 2), round(until * 100 / end, 2))
        if key not in names:
            names[key] = f"k{len(names)}"
            first, last = key
            # Every span ends hidden, except one that lasts until the end.
            states = "" if first == 0 else "0%{visibility:hidden}"
            states += f"{first:g}%{{visibility:visible}}"
            states += "" if last >= 100 else f"{last:g}%{{visibility:hidden}}"
            keyframes.append(f"@keyframes {names[key]}{{{states}}}")
        hidden = "" if since <= poster < until else ' class="h"'
        y = MARGIN + FONT + row * LINE
        body.append(
            f'<text y="{y}"{hidden} style="animation:{names[key]} {end:.1f}s step-end infinite">{line}</text>'
        )
    width, height = COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img">',
            "<title>The first ten minutes with Moothall in a terminal</title>",
            f"<style>{STYLE}{''.join(keyframes)}</style>",
            f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def main():
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    with tempfile.TemporaryDirectory() as folder:
        screens = record(f"{folder}/tmux")
    frames, end = without_long_stills(screens)
    svg = render(frames, end)
    if len(svg.encode()) > MAX_BYTES:
        sys.exit(f"the recording has {len(svg.encode())} bytes (limit: {MAX_BYTES})")
    output.write_text(svg)
    print(f"{output}: {len(frames)} screens, {end:.0f} s, {len(svg.encode()) // 1000} kB")


if __name__ == "__main__":
    main()
