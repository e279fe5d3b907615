// SPDX-License-Identifier: Apache-2.0
// Zoom, move and hover. The bars are drawn once, in ticks; only the part of them that is shown changes.
"use strict";
const chart = document.getElementById("chart");
const time = document.getElementById("time");
const axis = document.getElementById("axis");
const hover = document.getElementById("hover");
const part = document.getElementById("part");
const fact = Object.fromEntries(Object.entries(chart.dataset).map(([key, value]) => [key, Number(value)]));
let from = 0;
let length = fact.shown;

const nanoseconds = ticks => ticks * 1e9 / fact.hertz;
const text = ns => ns === 0 ? "0" : ns >= 1e6 ? +(ns / 1e6).toFixed(6) + " ms" : +(ns / 1e3).toFixed(3) + " µs";

function show(newFrom, newLength) {
  length = Math.min(Math.max(newLength, 100), fact.length);
  from = Math.min(Math.max(newFrom, 0), fact.length - length);
  time.setAttribute("viewBox", `${from} 0 ${length} ${fact.height}`);
  const all = nanoseconds(length);
  let step = 10 ** Math.floor(Math.log10(Math.max(all / 10, 1)));
  while (all / step > 12) step *= all / step > 24 ? 5 : 2;
  let ticks = "";
  for (let at = Math.ceil(nanoseconds(from) / step) * step; at <= nanoseconds(from + length); at += step) {
    const x = fact.labels + (at - nanoseconds(from)) / all * fact.width;
    ticks += `<line class="grid" x1="${x}" x2="${x}" y1="26" y2="${fact.height}"/>`
      + `<text class="tick" x="${x}" y="16">${text(at)}</text>`;
  }
  axis.innerHTML = ticks;
  part.textContent = length === fact.length ? "All is shown."
    : `This is a fragment: ${text(nanoseconds(from))} to ${text(nanoseconds(from + length))} of `
      + `${text(nanoseconds(fact.length))}. Zoom out, move, or press \u201call\u201d for the rest.`;
}

// Where the pointer is, in ticks and in units of the drawing.
function place(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
  return { tick: from + (point.x - fact.labels) / fact.width * length, x: point.x, y: point.y };
}

const lanes = [...document.querySelectorAll(".bar")].map(bar => ({
  name: bar.dataset.name,
  y: Number(bar.dataset.y),
  height: Number(bar.dataset.height),
  bars: [...bar.getAttribute("d").matchAll(/M(\d+) \d+h(\d+)/g)].map(([, start, width]) => [+start, +start + +width]),
}));

// Each job: release, deadline, end; NaN if nobody knows.
const tasks = [...document.querySelectorAll(".job[data-jobs]")].map(job => ({
  name: job.dataset.name,
  y: Number(job.dataset.y),
  height: Number(job.dataset.height),
  jobs: job.dataset.jobs.split(";").filter(Boolean)
    .map(times => times.split(",").map(time => time === "" ? NaN : Number(time))),
}));

// What is known about the job at this place.
function about(task, tick) {
  const number = task.jobs.findLastIndex(([released, , done]) => released <= tick && !(done < tick));
  if (number < 0) return null;
  const [released, deadline, done] = task.jobs[number];
  const known = (what, ticks) => Number.isNaN(ticks) ? "" : `, ${what} ${text(nanoseconds(ticks))}`;
  return `${task.name}: job ${number + 1}, released ${text(nanoseconds(released))}${known("deadline", deadline)}`
    + (Number.isNaN(done) ? ", not done" : known("done", done) + known("response", done - released))
    + (deadline < done ? ", LATE" : "");
}

chart.addEventListener("wheel", event => {
  event.preventDefault();
  const { tick } = place(event);
  const factor = event.deltaY > 0 ? 1.25 : 0.8;
  show(tick - (tick - from) * factor, length * factor);
}, { passive: false });

let grip = null;
chart.addEventListener("pointerdown", event => {
  grip = place(event).tick;
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointerup", () => { grip = null; });
chart.addEventListener("pointermove", event => {
  const at = place(event);
  if (grip !== null) {
    show(from + grip - at.tick, length);
    return;
  }
  const lane = lanes.find(lane => at.y >= lane.y && at.y < lane.y + lane.height);
  const bar = lane && lane.bars.find(([start, end]) => start <= at.tick && at.tick < end);
  const task = tasks.find(task => at.y >= task.y && at.y < task.y + task.height);
  const job = task && about(task, at.tick);
  hover.textContent = job ? job : bar
    ? `${lane.name}: ${text(nanoseconds(bar[0]))} to ${text(nanoseconds(bar[1]))}, ${text(nanoseconds(bar[1] - bar[0]))}`
    : text(nanoseconds(Math.max(at.tick, 0)));
});

document.getElementById("controls").addEventListener("click", ({ target: { dataset } }) => {
  const middle = from + length / 2;
  if (dataset.zoom) show(middle - length * dataset.zoom / 2, length * dataset.zoom);
  else if (dataset.move) show(from + length * dataset.move, length);
  else if ("all" in dataset) show(0, fact.length);
});
