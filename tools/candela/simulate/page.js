'use strict';
// The data stands in the page: see page.cpp beside this file. Everything below draws it;
// nothing is loaded from elsewhere.
const run = JSON.parse(document.getElementById('run').textContent);
const byId = id => document.getElementById(id);
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name);

const count = n => {
  if (n >= 1e9) return (n / 1e9).toFixed(2) + ' G';
  if (n >= 1e6) return (n / 1e6).toFixed(2) + ' M';
  if (n >= 1e4) return (n / 1e3).toFixed(1) + ' k';
  return String(Math.round(n));
};

const percent = x => (100 * x).toFixed(1) + ' %';
const hue = layer => layer < 0 ? 'hsl(0 0% 60%)' : `hsl(${(layer * 137.508) % 360} 58% 52%)`;
const layerName = layer => layer < 0 ? 'no layer' : run.layers[layer].node;

// --- Timeline: one row for each engine. Events of one engine follow each other, so that two binary
// searches find what is seen.
const lanes = run.engines.map(name => ({name, start: [], done: [], layer: [], op: [], stall: []}));

for (const [i, row] of run.events.entries()) {
  const lane = lanes[i];
  let at = 0;
  for (let k = 0; k < row.length; k += 5) {
    const start = at + row[k], done = start + row[k + 1];
    lane.start.push(start);
    lane.done.push(done);
    lane.layer.push(row[k + 2]);
    lane.op.push(row[k + 3]);
    lane.stall.push(row[k + 4]);
    at = done;
  }
}

const canvas = byId('timeline'), left = 66, rowHeight = 24;
let from = 0, to = Math.max(run.cycles, 1), pointed = null, drag = null;

const firstAfter = (list, value) => {  // index of the first that is above
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
};

function drawTimeline() {
  const width = canvas.clientWidth, height = lanes.length * rowHeight + 22,
        scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = height + 'px';
  const g = canvas.getContext('2d');
  g.scale(scale, scale);
  g.clearRect(0, 0, width, height);
  g.font = '11px system-ui,sans-serif';
  const space = width - left, perCycle = space / (to - from), ink = style('--soft'),
        line = style('--line');
  for (const [i, lane] of lanes.entries()) {
    const top = i * rowHeight + 2;
    g.fillStyle = ink;
    g.fillText(lane.name, 0, top + 14);
    g.fillStyle = line;
    g.fillRect(left, top + rowHeight - 3, space, 1);
    const last = firstAfter(lane.start, to);
    let k = firstAfter(lane.done, from);
    while (k < last) {
      const x = Math.max(0, (lane.start[k] - from) * perCycle),
            end = Math.min(space, (lane.done[k] - from) * perCycle);
      if (end - x >= 1.5) {
        g.globalAlpha = 1;
        g.fillStyle = hue(lane.layer[k]);
        g.fillRect(left + x, top, Math.max(end - x - .4, 1), rowHeight - 6);
        const text = layerName(lane.layer[k]);
        if (end - x > 60) {
          g.fillStyle = '#fff';
          g.fillText(text.slice(-Math.floor((end - x) / 7)), left + x + 3, top + 13, end - x - 6);
        }
        ++k;
        continue;
      }
      // Narrower than a pixel: all that lie in this one are a column, as dark as they fill it.
      const column = Math.floor(x), limit = from + (column + 1) / perCycle, layer = lane.layer[k];
      let busy = 0;
      do {
        busy += Math.min(lane.done[k], limit) - Math.max(lane.start[k], from);
        ++k;
      } while (k < last && lane.start[k] < limit);
      g.globalAlpha = Math.min(1, .15 + .85 * busy * perCycle);
      g.fillStyle = hue(layer);
      g.fillRect(left + column, top, 1, rowHeight - 6);
    }
    g.globalAlpha = 1;
  }
  const most = Math.max(2, space / 75);
  let step = 10 ** Math.floor(Math.log10((to - from) / most));
  for (const times of [2, 2.5, 2])
    if ((to - from) / step > most) step *= times;
  g.fillStyle = ink;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = left + (t - from) * perCycle, text = count(t);
    g.fillRect(x, 0, .5, height - 16);
    g.fillText(text, Math.min(x, width - g.measureText(text).width), height - 4);
  }
  if (drag && drag.moved) {
    g.globalAlpha = .2;
    g.fillStyle = style('--emulated');
    g.fillRect(Math.min(drag.x, drag.now), 0, Math.abs(drag.now - drag.x), height - 18);
    g.globalAlpha = 1;
  }
}

const timeAt = x => from + (x - left) / (canvas.clientWidth - left) * (to - from);

function show(begin, end) {
  const least = Math.max(end - begin, 20);
  from = Math.max(0, Math.min(begin, run.cycles - least));
  to = Math.min(Math.max(run.cycles, 20), from + least);
  drawTimeline();
}

function zoom(factor, about = (from + to) / 2) {
  const size = (to - from) * factor;
  show(about - (about - from) * factor, about - (about - from) * factor + size);
}

canvas.addEventListener('pointerdown', e => {
  drag = {x: e.offsetX, now: e.offsetX, moved: false};
  canvas.setPointerCapture(e.pointerId);
});

canvas.addEventListener('pointermove', e => {
  if (drag) {
    drag.now = e.offsetX;
    drag.moved ||= Math.abs(drag.now - drag.x) > 4;
    drawTimeline();
    return;
  }
  const lane = lanes[Math.floor(e.offsetY / rowHeight)], t = timeAt(e.offsetX);
  if (!lane || e.offsetX < left) return;
  const k = firstAfter(lane.done, t);
  pointed = k < lane.start.length && lane.start[k] <= t ? k : null;
  byId('told').textContent = pointed === null ?
      `${lane.name}: idle at ${Math.round(t)}` :
      `${lane.name}: ${run.ops[lane.op[k]]} of ${layerName(lane.layer[k])}, ${lane.start[k]} to ${
          lane.done[k]} (${lane.done[k] - lane.start[k]} cycles)` +
          (lane.stall[k] ? `, waited most for ${run.causes[lane.stall[k]]}` : '');
});

canvas.addEventListener('pointerup', e => {
  if (drag && drag.moved)
    show(Math.min(timeAt(drag.x), timeAt(e.offsetX)), Math.max(timeAt(drag.x), timeAt(e.offsetX)));
  drag = null;
  drawTimeline();
});

canvas.addEventListener('dblclick', () => show(0, run.cycles));

canvas.addEventListener('wheel', e => {
  if (!e.ctrlKey) return;
  e.preventDefault();
  zoom(e.deltaY > 0 ? 1.25 : .8, timeAt(e.offsetX));
}, {passive: false});

canvas.addEventListener('keydown', e => {
  const move = {ArrowLeft: -.2, ArrowRight: .2}[e.key];
  if (move)
    show(from + move * (to - from), to + move * (to - from));
  else if (e.key === '+' || e.key === '=')
    zoom(.6);
  else if (e.key === '-')
    zoom(1.6);
  else if (e.key === '0')
    show(0, run.cycles);
  else
    return;
  e.preventDefault();
});

byId('closer').onclick = () => zoom(.5);
byId('farther').onclick = () => zoom(2);
byId('earlier').onclick = () => show(from - .5 * (to - from), to - .5 * (to - from));
byId('later').onclick = () => show(from + .5 * (to - from), to + .5 * (to - from));
byId('whole').onclick = () => show(0, run.cycles);

const showLayer = i => {
  const l = run.layers[i];
  show(l.start - .05 * (l.done - l.start), l.done + .05 * (l.done - l.start));
  byId('timeline').scrollIntoView({block: 'center'});
  byId('told').textContent = `${l.node}: ${l.start} to ${l.done}`;
};

// --- Memory: what lies in the scratchpad, instructions of the Program to the right, bytes upwards.
const memory = byId('memory');

function drawMemory() {
  if (!memory) return;
  const map = run.memory[+byId('program').value], width = memory.clientWidth, height = 240,
        scale = window.devicePixelRatio || 1;
  memory.width = width * scale;
  memory.height = height * scale;
  memory.style.height = height + 'px';
  const g = memory.getContext('2d'), perInstruction = width / Math.max(map.instructions, 1),
        perByte = height / map.capacity;
  g.scale(scale, scale);
  g.fillStyle = style('--code');
  g.fillRect(0, 0, width, height);
  for (let k = 0; k < map.blocks.length; k += 5) {
    const [offset, bytes, first, last, layer] = map.blocks.slice(k, k + 5);
    g.fillStyle = hue(layer);
    g.fillRect(
        first * perInstruction, height - (offset + bytes) * perByte,
        Math.max((last + 1 - first) * perInstruction - .2, .4), Math.max(bytes * perByte - .3, .4));
  }
}

if (memory) {
  for (const [i, map] of run.memory.entries()) byId('program').add(new Option(map.name, i));
  byId('program').hidden = run.memory.length < 2;
  byId('program').onchange = drawMemory;
  memory.addEventListener('pointermove', e => {
    const map = run.memory[+byId('program').value],
          at = Math.floor(e.offsetX / memory.clientWidth * map.instructions),
          byte = (1 - e.offsetY / memory.clientHeight) * map.capacity;
    let text = `instruction ${at}: nothing at byte ${Math.floor(byte)}`;
    for (let k = 0; k < map.blocks.length; k += 5) {
      const [offset, bytes, first, last, layer] = map.blocks.slice(k, k + 5);
      if (first <= at && at <= last && offset <= byte && byte < offset + bytes) {
        text = `${bytes} bytes at ${offset}, instructions ${first} to ${last}, ${layerName(layer)}`;
        break;
      }
    }
    byId('memory-told').textContent = text;
  });
}

// --- Roofline: products for each byte of DRAM against products for each cycle, both logarithmic.
function drawRoofline() {
  const pointOf = (l, i) =>
      ({i, l, x: l.macs / Math.max(l.dram, 1), y: l.macs / Math.max(l.cycles, 1)});
  const points = run.layers.map(pointOf).filter(p => p.l.macs > 0 && p.l.cycles > 0);
  const W = Math.max(320, Math.min(900, byId('roofline').clientWidth)), H = 320, L = 48, B = 34;
  const low = Math.min(.5, ...points.map(p => p.x)) / 1.5,
        high = Math.max(run.peak / run.bandwidth * 20, ...points.map(p => p.x)) * 1.5;
  const floor = Math.min(run.peak / 64, ...points.map(p => p.y)) / 1.5, roof = run.peak * 1.6;
  const X = v => L + (W - L - 8) * Math.log(v / low) / Math.log(high / low),
        Y = v => 8 + (H - B - 8) * (1 - Math.log(v / floor) / Math.log(roof / floor));
  let out = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="roofline">`;
  for (let v = 10 ** Math.ceil(Math.log10(low)); v < high; v *= 10)
    out += `<path class="grid" d="M${X(v)} 8V${H - B}"/><text x="${X(v)}" y="${
        H - 18}" text-anchor="middle">${v < 1 ? v.toFixed(1) : count(v)}</text>`;
  for (let v = 10 ** Math.ceil(Math.log10(floor)); v < roof; v *= 10)
    out += `<path class="grid" d="M${L} ${Y(v)}H${W - 8}"/><text x="${L - 6}" y="${
        Y(v) + 4}" text-anchor="end">${v < 1 ? v.toFixed(1) : count(v)}</text>`;
  const ridge = run.peak / run.bandwidth, begin = Math.max(low, floor / run.bandwidth);
  out +=
      `<path class="roof" d="M${X(begin)} ${Y(begin * run.bandwidth)}L${X(Math.max(ridge, low))} ${
          Y(Math.min(run.peak, Math.max(ridge, low) * run.bandwidth))}H${W - 8}"/>`;
  out += `<text x="${W - 10}" y="${Y(run.peak) - 6}" text-anchor="end">${
      run.peak} MAC per cycle</text>`;
  out += `<text x="${W / 2}" y="${H - 3}" text-anchor="middle">MAC per byte of DRAM (${
      run.bandwidth.toFixed(1)} bytes per cycle)</text>`;
  const most = Math.max(...points.map(p => p.l.cycles), 1);
  for (const p of points)
    out += `<circle data-layer="${p.i}" cx="${X(p.x)}" cy="${Y(p.y)}" r="${
        3 + 9 * Math.sqrt(p.l.cycles / most)}" fill="${hue(p.i)}"><title></title></circle>`;
  byId('roofline').innerHTML = out + '</svg>';
  for (const circle of byId('roofline').querySelectorAll('circle')) {
    const l = run.layers[+circle.dataset.layer];
    circle.querySelector('title').textContent =
        `${l.node}: ${count(l.macs)} MACs, ${count(l.dram)} bytes, ${count(l.cycles)} cycles, ${
            percent(l.macs / (l.cycles * run.peak))}`;
    circle.onclick = () => showLayer(+circle.dataset.layer);
  }
}

// --- What if: each layer grows or shrinks as the engine that is busiest in it.
const bandwidthField = byId('bandwidth'), arrayField = byId('array');

function estimate(bandwidth, array) {
  let cycles = 0;
  for (const l of run.layers) {
    const others = Math.max(l.requant, l.vector, 1e-9),
          dma = Math.max(l.transfer, l.dram / run.bandwidth);
    const now = Math.max(l.matrix, dma, others),
          then = Math.max(l.matrix / array, dma / bandwidth, others);
    cycles += l.cycles * then / now;
  }
  return cycles;
}

function answer() {
  const bandwidth = 2 ** +bandwidthField.value, array = 2 ** +arrayField.value,
        cycles = estimate(bandwidth, array);
  byId('bandwidth-is').textContent =
      `${(run.bandwidth * bandwidth * run.clock_mhz / 1000).toFixed(1)} GB/s`;
  byId('array-is').textContent = `${count(run.peak * array)} MAC/cycle`;
  byId('answer').textContent = `about ${count(cycles)} cycles, ${
      (cycles / run.clock_mhz / 1000).toFixed(2)} ms: ${(run.cycles / cycles).toFixed(2)}x as fast`;
}

bandwidthField.oninput = arrayField.oninput = answer;

// --- Layers: every column sorts; a click on a row shows it in the timeline.
const table = byId('layers'), body = table.tBodies[0], rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells], order = byId('order');

function sortBy(column, down) {
  const head = heads[column], isNumber = head.classList.contains('n');
  for (const other of heads) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  order.value = column;
  const key = row => isNumber ? +row.cells[column].dataset.v : row.cells[column].textContent;
  const compared = (a, b) => {
    if (key(a) < key(b)) return -1;
    if (key(a) > key(b)) return 1;
    return a.dataset.i - b.dataset.i;
  };
  rows.sort((a, b) => compared(a, b) * (down ? -1 : 1));
  body.append(...rows);
}

for (const [column, head] of heads.entries()) {
  head.onclick = () => sortBy(column, head.getAttribute('aria-sort') !== 'descending');
  // Where the head is not seen, this orders the rows.
  if (head.textContent)
    order.add(new Option(column ? 'by ' + head.textContent : 'in order', column));
}

order.onchange = () =>
    sortBy(+order.value, +order.value > 0 && heads[order.value].classList.contains('n'));
for (const row of rows) row.onclick = () => showLayer(+row.dataset.i);

byId('find').oninput = () => {
  const wanted = byId('find').value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
};

drawTimeline();
drawMemory();
drawRoofline();
answer();

new ResizeObserver(() => {
  drawTimeline();
  drawMemory();
  drawRoofline();
}).observe(document.querySelector('main'));

// Behind the first frame: what is seen can be used. scripts/nightly_npu_page.py reads it.
requestAnimationFrame(() => setTimeout(() => performance.mark('interactive')));
