#!/usr/bin/env python3
"""Opens the page of a simulation in Chromium, and measures how soon it can be used, on a desk and on a phone.

usage: benchmarks/npu/npu_page.py [--candela FILE] [--browser FILE] [--screenshots DIR] [--report FILE]

The page of text detection (scripts/fetch_models, made 8 bits here) on gem16, of 100 layers at least, in windows 1280 and
400 pixels wide. It must have 5 MB at most; be interactive within 2 s, the median of 5 loads in a fresh tab each, by the
mark that the page sets once its first picture stands; scroll nowhere sideways; write nothing to the console; and then do
what a click on the head of a column, on a layer and on a button asks for. Writes benchmarks/results/npu_page.json.
Needs Chromium, the packages of tests/models/requirements.txt, and onnx.

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402
import quantized_models  # noqa: E402

SCHEMA = "candela.npu_page.v1"
MODEL, NPU = "ocr_detection", "gem16"
WINDOWS = {1280: 900, 400: 800}
LOADS = 5
PICTURE = 3000  # pixels from the top
MOST_BYTES, MOST_MS, LEAST_LAYERS = 5_000_000, 2000, 100
TIMEOUT_SECONDS = 600

MARK = "performance.getEntriesByName('interactive')[0]?.startTime ?? null"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What is done, and what must be true then. A phone has no heads to click on: there a list says by which column.
IS_SORTED = """(() => { const of = [...document.querySelectorAll('#layers tbody tr')].map(row => +row.cells[2].dataset.v);
    return of.length > 0 && of.every((each, i) => !i || each <= of[i - 1]); })()"""
PICKED = "(() => { const e = document.getElementById('order'); e.value = '2'; e.dispatchEvent(new Event('change')); return e.offsetWidth > 0; })()"
CLICKS = {
    "a layer is shown": ("#layers tbody tr", "document.getElementById('told').textContent.includes(' to ')"),
    "the timeline zooms": ("#closer", "to - from < run.cycles"),
}


class Browser:
    """Chromium by the DevTools protocol, through a pipe: messages end in a zero byte."""

    def __init__(self, path, folder):
        to_browser, mine = os.pipe()
        self.answers, from_browser = os.pipe()
        self.commands = mine

        def take_pipes():  # Chromium reads 3 and writes 4; the others may lie there
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        # As root there is no sandbox; the pages are our own.
        flags = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}"]
        self.process = subprocess.Popen([path, *flags, "about:blank"], preexec_fn=take_pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.last, self.events = b"", 0, []

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.answers, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, session=None, **parameters):
        self.last += 1
        text = {"id": self.last, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(text).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        while True:
            message = self.message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)

    def wait(self, method, session):
        while True:
            for i, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(i)
            self.events.append(self.message())

    def close(self):
        os.close(self.commands)
        self.process.terminate()
        self.process.wait()
        os.close(self.answers)


class Tab:
    def __init__(self, browser, width, height):
        self.browser = browser
        self.target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 640)

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def open(self, path):
        self.ask("Page.navigate", url=path.as_uri())
        self.browser.wait("Page.loadEventFired", self.session)
        # The mark is set behind the first frame; so is this answer.
        return self.value(f"new Promise(r => {{ const look = () => {{ const at = {MARK}; at === null ? requestAnimationFrame(look) : r(at); }}; look(); }})")

    def click(self, selector):
        at = self.value(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});
            const r = e.getBoundingClientRect(); return {{x: r.x + Math.min(r.width, 300) / 2, y: r.y + r.height / 2}}; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def complaints(self):
        """What went to the console, and exceptions."""
        said = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.consoleAPICalled":
                said.append(" ".join(str(each.get("value", each.get("description"))) for each in event["params"]["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                said.append(event["params"]["exceptionDetails"]["text"])
            elif event["method"] == "Log.entryAdded":
                said.append(event["params"]["entry"]["text"])
        return said

    def picture(self, path, width):
        clip = {"x": 0, "y": 0, "width": width, "height": min(self.value("document.documentElement.scrollHeight"), PICTURE), "scale": 1}
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]))

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self.target)


def measure(browser, page, width, screenshots):
    loads, problems = [], []
    for _ in range(LOADS):
        tab = Tab(browser, width, WINDOWS[width])
        loads.append(tab.open(page))
        wider, said = tab.value(WIDER), tab.complaints()
        if len(loads) < LOADS:
            tab.close()
    if screenshots:
        tab.picture(screenshots / f"{width}.png", width)
    if width >= 640:
        tab.click("#layers th:nth-child(3)")
    elif not tab.value(PICKED):
        problems.append(f"{width} px: there is no list to sort by")
    if not tab.value(IS_SORTED):
        problems.append(f"{width} px: layers are not sorted by cycles")
    for what, (selector, then) in CLICKS.items():
        tab.click(selector)
        if not tab.value(then):
            problems.append(f"{width} px: after a click on {selector} it is not so that {what}")
    said += [each for each in tab.complaints() if each not in said]
    tab.close()
    milliseconds = statistics.median(loads)
    if milliseconds > MOST_MS:
        problems.append(f"{width} px: interactive after {milliseconds:.0f} ms")
    if wider > 0:
        problems.append(f"{width} px: scrolls sideways by {wider} px")
    problems += [f"{width} px: console: {each}" for each in said]
    return {"width": width, "interactive_ms": round(milliseconds), "loads_ms": [round(each) for each in loads],
            "wider_px": wider, "console": said}, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--screenshots", type=pathlib.Path, help="a folder for a picture of each width")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_page.json")
    arguments = parser.parse_args()
    if not arguments.candela.exists() or not arguments.browser:
        print(f"npu_page: {arguments.candela if arguments.browser else 'a browser'} is missing", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (model,) = quantized_models.quantized(folder, [MODEL])
        page = folder / "page.html"
        report = nightly_report.answer([str(arguments.candela), "simulate", str(model), "--npu", NPU, "--random", "1", "--html", str(page)],
                                       TIMEOUT_SECONDS)
        size, layers = page.stat().st_size, len(report["layers"])
        problems = [f"{size} bytes"] if size > MOST_BYTES else []
        if layers < LEAST_LAYERS:
            problems.append(f"{layers} layers")
        browser = Browser(arguments.browser, folder / "profile")
        try:
            version = browser.ask("Browser.getVersion")["product"]
            windows = [measure(browser, page, width, arguments.screenshots) for width in WINDOWS]
        finally:
            browser.close()
    problems += [each for _, of in windows for each in of]
    case = {"model": model.stem, "npu": NPU, "layers": layers, "page_bytes": size, "windows": [window for window, _ in windows],
            "problems": problems, "passed": not problems}
    print(f"{model.stem} on {NPU}: {layers} layers, {size:,} bytes; " +
          "; ".join(f"{each['width']} px in {each['interactive_ms']} ms" for each in case["windows"]) +
          f"; {'; '.join(problems) or 'passed'}")
    return nightly_report.finish(arguments, {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(),
                                             "browser": version, "results": [case]}, None)


if __name__ == "__main__":
    sys.exit(main())
