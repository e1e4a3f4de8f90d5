// The table of a kind. Rows are kept by key, and only what differs is touched: with a thousand of them a change costs one row.
import { el, setText } from './dom.mjs';
import { matches } from './objects.mjs';

const NEWS_MAX = 20; // rows that come together and are still shown as news
const ROWS_MAX = 2000; // shown; who has more looks for something, and filters

class Row {
	constructor(kind, key, isNews) {
		this.key = key;
		this.button = el('button', { type: 'button', tabIndex: -1 });
		this.cells = kind.columns.map((column) => el('td', { className: column.isAge ? 'age' : '' }, column.isName ? this.button : null));
		this.element = el('tr', { className: isNews ? 'fresh' : '', 'aria-selected': 'false' }, ...this.cells);
		this.element.dataset.key = key;
	}

	draw(kind, object, now) {
		this.object = object;
		kind.columns.forEach((column, i) => {
			const { text = '', tone, title = text } = column.cell(object, now);
			const td = this.cells[i], holder = column.isName ? this.button : td;
			setText(holder, text ?? '');
			if (td.title !== title && !column.isAge)
				td.title = title;
			const tones = tone ? `tone tone-${tone}` : '';
			if (!column.isAge && td.className !== tones)
				td.className = tones;
		});
	}

	tick(kind, now) {
		kind.columns.forEach((column, i) => {
			if (column.isAge)
				setText(this.cells[i], column.cell(this.object, now).text);
		});
	}
}

export class Table {
	/** chosen(kind, object): the user wants to see it. */
	constructor(kind, chosen) {
		this.kind = kind;
		this.chosen = chosen;
		this.rows = new Map(); // those in the table
		this.words = [];
		this.selectedKey = null;
		this.count = el('span', { className: 'count' });
		this.body = el('tbody');
		this.note = el('p', { className: 'empty' });
		const title = el('h2', { id: `${kind.id}-title` }, `${kind.title} `, this.count);
		const head = el('tr', {}, ...kind.columns.map((c) => el('th', { scope: 'col', className: c.width }, c.title)));
		const table = el('table', { 'aria-labelledby': title.id }, el('thead', {}, head), this.body);
		this.element = el('section', { id: kind.id, 'aria-labelledby': title.id }, title, el('div', { className: 'scroll' }, table, this.note));
		this.body.addEventListener('click', (event) => this.clicked(event));
		this.body.addEventListener('keydown', (event) => this.pressed(event));
	}

	/** items: all objects by key. keys: those that may differ; null = look at everything. */
	update(items, keys, now) {
		this.items = items;
		let moved = keys === null;
		this.isNews = keys !== null && keys.size <= NEWS_MAX;
		for (const key of keys ?? items.keys())
			moved = this.place(key, now) || moved;
		if (moved)
			this.arrange();
		this.say();
	}

	/** Makes, redraws or drops a key's row; true when the order of rows may differ. */
	place(key, now) {
		const object = this.items.get(key), row = this.rows.get(key);
		const isIn = object !== undefined && matches(this.kind, object, this.words);
		if (!isIn)
			return this.rows.delete(key);
		if (row)
			row.draw(this.kind, object, now);
		else
			this.make(key, object, now);
		return !row;
	}

	make(key, object, now) {
		const row = new Row(this.kind, key, this.isNews);
		row.draw(this.kind, object, now);
		this.rows.set(key, row);
		this.mark(row);
	}

	arrange() {
		for (const key of this.rows.keys())
			if (!this.items.has(key))
				this.rows.delete(key);
		const order = [...this.rows.keys()].sort().slice(0, ROWS_MAX);
		let at = this.body.firstElementChild;
		for (const key of order) {
			const { element } = this.rows.get(key);
			if (element === at)
				at = at.nextElementSibling;
			else
				this.body.insertBefore(element, at);
		}
		while (at) {
			const next = at.nextElementSibling;
			at.remove();
			at = next;
		}
		this.order = order;
		this.keepEntry();
	}

	say() {
		const all = this.items.size, shown = this.rows.size;
		setText(this.count, all === shown ? String(all) : `${shown} of ${all}`);
		if (this.error)
			return;
		delete this.note.dataset.tone;
		this.note.hidden = shown > 0 && shown <= ROWS_MAX;
		setText(this.note, shown > ROWS_MAX ? `and ${shown - ROWS_MAX} more, which a filter would find` : all ? 'none that the filter finds' : 'none');
	}

	/** Why there is nothing, or nothing new; '' = all is well again. */
	fail(text) {
		this.error = text;
		if (text) {
			this.note.dataset.tone = 'bad';
			this.note.hidden = false;
			setText(this.note, text);
		} else if (this.items) {
			this.say();
		}
	}

	setFilter(words, now) {
		this.words = words;
		if (this.items)
			this.update(this.items, null, now);
	}

	tick(now) {
		for (const row of this.rows.values())
			row.tick(this.kind, now);
	}

	// ---- choosing one ----

	mark(row) {
		row.element.setAttribute('aria-selected', String(row.key === this.selectedKey));
	}

	select(key) {
		const before = this.rows.get(this.selectedKey), after = this.rows.get(key);
		this.selectedKey = key;
		for (const row of [before, after])
			if (row)
				this.mark(row);
		this.keepEntry();
	}

	focusSelected() {
		this.rows.get(this.selectedKey)?.button.focus();
	}

	/** One row of a table is where the Tab key enters it; arrows go on from there. */
	keepEntry() {
		const entry = this.rows.get(this.selectedKey) ?? this.rows.get(this.order?.[0]);
		if (this.entry === entry)
			return;
		if (this.entry)
			this.entry.button.tabIndex = -1;
		if (entry)
			entry.button.tabIndex = 0;
		this.entry = entry;
	}

	clicked(event) {
		const row = this.rows.get(event.target.closest('tr')?.dataset.key);
		if (row)
			this.chosen(this.kind, row.object);
	}

	pressed(event) {
		const here = event.target.closest('tr');
		const to = { ArrowDown: here?.nextElementSibling, ArrowUp: here?.previousElementSibling, Home: this.body.firstElementChild, End: this.body.lastElementChild }[event.key];
		if (!to)
			return;
		event.preventDefault();
		to.querySelector('button').focus();
	}
}
