"""Draws a stretch of a trace of `tl bench --trace`: one lane for each thread.

    python draw_trace.py run.json trace.png [milliseconds [where]]

`where` is a part of the trace, 0 to 1. Needs Pillow.
"""

import json
import sys

from PIL import Image, ImageDraw

COLOURS = {
    "read": "#4878a8",
    "decode": "#d9822b",
    "transform": "#7a5aa6",
    "write": "#4f9d57",
    "finish": "#a63d57",
    "wait for batch": "#cccccc",
    "wait for consumer": "#e3d5b8",
    "step": "#333333",
}
LEFT, TOP, LANE, WIDTH = 90, 34, 44, 1100


def main(source, target, milliseconds=40.0, where=0.5):
    events = json.load(open(source))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    start = spans[int(where * (len(spans) - 1))]["ts"]
    scale = WIDTH / (milliseconds * 1000)
    image = Image.new("RGB", (LEFT + WIDTH + 10, TOP + LANE * len(names) + 24), "white")
    draw = ImageDraw.Draw(image)
    x = LEFT
    for name, colour in COLOURS.items():
        draw.rectangle([x, 10, x + 12, 22], fill=colour)
        draw.text((x + 17, 10), name, fill="black")
        x += 30 + int(draw.textlength(name))
    for lane, (thread, name) in enumerate(sorted(names.items())):
        top = TOP + lane * LANE
        draw.text((8, top + 14), name, fill="black")
        for span in (e for e in spans if e["tid"] == thread):
            left = (span["ts"] - start) * scale
            right = left + span["dur"] * scale
            if right >= 0 and left <= WIDTH:
                box = [LEFT + max(left, 0), top + 4, LEFT + min(right, WIDTH), top + LANE - 4]
                draw.rectangle(box, fill=COLOURS[span["name"]])
    bottom = TOP + LANE * len(names)
    for step in range(0, int(milliseconds) + 1, 5):
        x = LEFT + step * 1000 * scale
        draw.line([x, TOP, x, bottom + 4], fill="#999999")
        draw.text((x - 6, bottom + 7), f"{step} ms", fill="black")
    image.save(target, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(float, sys.argv[3:5]))
