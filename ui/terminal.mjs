// A terminal in the page: draws a screen, and sends what is typed into a shell of a sandbox.
import { byId, el, setText } from './dom.mjs';
import { endText, Exec, execPath, SHELL } from './exec.mjs';
import { colourOf, keyText, pasteText, Screen } from './screen.mjs';

const KEPT_MAX = 2000; // lines above, in the page
const FLAGS = ['bold', 'dim', 'italic', 'underline', 'hidden', 'strike'];

/** Classes for what there are few of, colours for the others. */
function dress(span, { fg, bg, inverse, ...flags }) {
	const classes = FLAGS.filter((flag) => flags[flag]), front = inverse ? bg ?? 'd' : fg, back = inverse ? fg ?? 'd' : bg;
	for (const [value, prefix, property] of [[front, 'f', 'color'], [back, 'b', 'backgroundColor']]) {
		if (value === null)
			continue;
		if (value === 'd' || value < 16)
			classes.push(prefix + value);
		else
			span.style[property] = typeof value === 'string' ? value : colourOf(value);
	}
	span.className = classes.join(' ');
	return span;
}

/** A line's cells, neighbours of the same style together; cursor: its column, or -1. */
function spansOf(line, cursor) {
	const spans = [];
	let text = '', style = null;
	const flush = () => {
		if (text)
			spans.push(dress(el('span', {}, text), style));
		text = '';
	};
	line.forEach((cell, x) => {
		if (x === cursor) {
			flush();
			spans.push(dress(el('span', {}, cell.ch || ' '), cell.style));
			spans.at(-1).classList.add('cursor');
			return;
		}
		if (cell.style !== style)
			flush();
		style = cell.style;
		text += cell.ch;
	});
	flush();
	return spans;
}

class View {
	/** typed(text): the user sends it; sized(cols, rows): there is room for so many. */
	constructor(body, { typed, sized }) {
		this.body = body;
		this.typed = typed;
		this.sized = sized;
		this.above = el('div');
		this.now = el('div');
		this.measure = el('span', { className: 'measure' }, 'M'.repeat(20));
		this.input = el('textarea', { id: 'terminal-input', 'aria-label': 'Terminal, Ctrl F6 leaves it', autocapitalize: 'off', autocomplete: 'off', spellcheck: false });
		body.replaceChildren(this.measure, this.above, this.now, this.input);
		this.listen();
	}

	listen() {
		const { input, body } = this;
		input.addEventListener('keydown', (event) => this.pressed(event));
		input.addEventListener('input', (event) => !event.isComposing && this.takeInput());
		input.addEventListener('compositionend', () => this.takeInput());
		input.addEventListener('paste', (event) => {
			event.preventDefault();
			this.typed(pasteText(event.clipboardData.getData('text'), this.screen.brackets));
		});
		body.addEventListener('mouseup', () => getSelection().isCollapsed && input.focus({ preventScroll: true }));
		new ResizeObserver(() => this.fit()).observe(body);
	}

	pressed(event) {
		if (event.key === 'F6' && event.ctrlKey) {
			byId('terminal-close').focus();
			event.preventDefault();
			return;
		}
		const text = event.isComposing ? null : keyText(event, this.screen.appKeys);
		event.stopPropagation(); // no key of the page's
		if (text === null)
			return;
		event.preventDefault();
		this.typed(text);
	}

	takeInput() {
		if (this.input.value)
			this.typed(this.input.value.replaceAll('\n', '\r'));
		this.input.value = '';
	}

	/** How many cells fit. */
	room() {
		const width = this.measure.getBoundingClientRect().width / 20 || 8, style = getComputedStyle(this.body);
		const across = this.body.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
		const down = this.body.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
		return [Math.max(20, Math.floor(across / width)), Math.max(4, Math.floor(down / parseFloat(style.lineHeight)))];
	}

	begin(reply) {
		this.screen = new Screen(...this.room(), reply);
		this.drawn = 0;
		this.above.replaceChildren();
		this.now.replaceChildren();
		this.touch();
	}

	fit() {
		if (!this.screen || this.body.clientHeight === 0)
			return;
		const [cols, rows] = this.room();
		if (cols === this.screen.cols && rows === this.screen.rows)
			return;
		this.screen.resize(cols, rows);
		this.sized(cols, rows);
		this.touch();
	}

	write(text) {
		this.screen.write(text);
		this.touch();
	}

	/** At most once a frame, however much is printed. */
	touch() {
		if (this.isWaiting)
			return;
		this.isWaiting = true;
		requestAnimationFrame(() => {
			this.isWaiting = false;
			this.draw();
		});
	}

	draw() {
		const { body, screen } = this, isAtEnd = body.scrollTop + body.clientHeight >= body.scrollHeight - 4;
		this.drawAbove();
		while (this.now.children.length > screen.rows)
			this.now.lastElementChild.remove();
		while (this.now.children.length < screen.rows)
			this.now.append(el('div', { className: 'line' }));
		for (const y of screen.dirty)
			this.now.children[y]?.replaceChildren(...spansOf(screen.lines[y], screen.hasCursor && y === screen.y ? screen.x : -1));
		screen.dirty.clear();
		this.input.style.top = `${this.now.offsetTop + screen.y * 18}px`;
		if (isAtEnd)
			body.scrollTop = body.scrollHeight;
	}

	drawAbove() {
		const { screen } = this, fresh = Math.min(screen.gone - this.drawn, screen.above.length);
		this.drawn = screen.gone;
		if (fresh > 0)
			this.above.append(...screen.above.slice(-fresh).map((line) => el('div', { className: 'line' }, ...spansOf(line, -1))));
		while (this.above.children.length > Math.min(KEPT_MAX, screen.above.length))
			this.above.firstElementChild.remove();
	}
}

/** The panel at the bottom; one shell at a time. */
export class Terminal {
	constructor() {
		this.element = byId('terminal');
		this.again = byId('terminal-again');
		this.select = byId('terminal-select');
		this.view = new View(byId('terminal-body'), {
			typed: (text) => this.type(text),
			sized: (cols, rows) => this.exec?.resize(cols, rows),
		});
		this.again.addEventListener('click', () => this.connect());
		this.select.addEventListener('change', () => this.connect());
		byId('terminal-close').addEventListener('click', () => this.close());
	}

	open(api, namespaceName, pod, containers) {
		this.target = { api, namespaceName, pod };
		setText(byId('terminal-title'), `${namespaceName}/${pod}`);
		this.select.replaceChildren(...containers.map((name) => el('option', { value: name }, name)));
		byId('terminal-container').hidden = containers.length < 2;
		this.element.hidden = false;
		this.connect();
	}

	connect() {
		this.exec?.close();
		const { api, namespaceName, pod } = this.target, path = execPath(namespaceName, pod, this.select.value, SHELL);
		const decoder = new TextDecoder();
		this.view.begin((text) => this.type(text));
		this.say('Connecting', false);
		const exec = new Exec(`wss://${location.host}${path}`, api.token, {
			opened: () => this.opened(exec),
			printed: (bytes) => this.exec === exec && this.view.write(decoder.decode(bytes, { stream: true })),
			ended: (status) => this.exec === exec && this.ended(exec, status, path),
		});
		this.exec = exec;
		this.view.input.focus();
	}

	opened(exec) {
		exec.resize(this.view.screen.cols, this.view.screen.rows);
		this.say('Connected', false);
	}

	/** A browser does not tell why a WebSocket was refused, so the server is asked the usual way. */
	async ended(exec, status, path) {
		this.exec = null;
		let text = endText(status);
		if (!exec.wasOpen) {
			text = 'The connection could not be made.';
			await this.target.api.get(path).catch((error) => {
				if (error.status && error.status !== 400)
					text = error.message;
			});
		}
		if (this.exec === null)
			this.say(text, true);
	}

	say(text, isOver) {
		setText(byId('terminal-state'), text);
		this.again.hidden = !isOver;
	}

	type(text) {
		if (this.exec?.wasOpen && !this.exec.type(text))
			this.say('That was too much at once, and was not sent.', false);
	}

	close() {
		const exec = this.exec;
		this.exec = null;
		exec?.close();
		this.element.hidden = true;
	}
}
