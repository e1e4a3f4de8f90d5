// The chosen object: what can be done with it, its conditions, its events, and itself as YAML.
import { el, setText } from './dom.mjs';
import { age, eventTime, isSuspended, shown, sortEvents } from './objects.mjs';
import { toYaml } from './yaml.mjs';

const EVENTS_MAX = 50; // shown

function row(...texts) {
	return el('tr', {}, ...texts.map((text) => (text instanceof Node ? text : el('td', {}, text))));
}

/** A time that goes on: its cell is written anew by tick. */
function agingCell(timestamp, now) {
	const td = el('td', { className: 'age', title: timestamp || '' }, age(timestamp, now));
	td.dataset.since = timestamp || '';
	return td;
}

function section(title, rows, none) {
	const content = rows.length ? el('table', {}, el('tbody', {}, ...rows)) : el('p', { className: 'quiet' }, none);
	return el('div', {}, el('h3', {}, title), content);
}

/** What is said of a condition's status: some types are good when they are False. */
function conditionRow(c, now) {
	const tone = c.status === 'Unknown' ? 'wait' : c.type === 'Ready' ? (c.status === 'True' ? 'ok' : 'wait') : 'idle';
	const status = el('td', { className: `tone tone-${tone}` }, `${c.type} ${c.status}`);
	const text = el('td', {}, c.reason || '', c.message ? el('div', { className: 'quiet' }, c.message) : null);
	return row(status, text, agingCell(c.lastTransitionTime, now));
}

function eventRow(e, now) {
	const what = el('td', { className: `tone tone-${e.type === 'Warning' ? 'bad' : 'idle'}` }, e.reason || '');
	const times = e.series?.count || e.count || 1;
	return row(what, `${e.message || ''}${times > 1 ? ` (${times} times)` : ''}`, agingCell(eventTime(e), now));
}

export class Detail {
	/** actions(kind, object): [{label, run, isDanger}]; closed(): the user has seen enough. */
	constructor(element, { actions, closed }) {
		this.element = element;
		this.actions = actions;
		this.heading = el('h2', {});
		this.line = el('p', { className: 'kind' });
		this.buttons = el('p', { className: 'actions' });
		this.conditions = el('div');
		this.events = el('div', { 'aria-live': 'off' });
		this.text = el('pre', { tabIndex: 0, 'aria-label': 'The object as YAML' });
		const close = el('button', { type: 'button', title: 'Close (Escape)', 'aria-label': 'Close' }, '×');
		close.addEventListener('click', closed);
		element.replaceChildren(el('div', { className: 'top' }, this.heading, close), this.line, this.buttons,
			this.conditions, this.events, el('h3', {}, 'Object'), this.text);
	}

	show(kind, object, now) {
		this.element.hidden = false;
		setText(this.heading, object.metadata.name);
		setText(this.line, `${kind.kind} in ${object.metadata.namespace}${object.metadata.deletionTimestamp ? ', being deleted' : ''}`);
		this.drawButtons(kind, object);
		this.conditions.replaceChildren(section('Conditions', (object.status?.conditions || []).map((c) => conditionRow(c, now)), 'none yet'));
		setText(this.text, toYaml(shown(object)));
	}

	/** Kept as long as they are the same, so that whoever stands on one stays there. */
	drawButtons(kind, object) {
		const actions = this.actions(kind, object), labels = `${object.metadata.uid} ${actions.map((a) => a.label).join()}`;
		this.now = new Map(actions.map((a) => [a.label, a.run]));
		if (this.labels === labels)
			return;
		this.labels = labels;
		const hadFocus = this.buttons.contains(document.activeElement);
		this.buttons.replaceChildren(...actions.map(({ label, isDanger }) => {
			const button = el('button', { type: 'button', className: isDanger ? 'danger' : '' }, label);
			button.addEventListener('click', () => this.press(button, label));
			return button;
		}));
		if (hadFocus)
			this.buttons.querySelector('button')?.focus();
	}

	async press(button, label) {
		button.disabled = true;
		await this.now.get(label)();
		button.disabled = false;
	}

	/** events: null where the server has none to give. */
	showEvents(events, now) {
		this.events.hidden = events === null;
		if (events)
			this.events.replaceChildren(section('Events', sortEvents(events).slice(0, EVENTS_MAX).map((e) => eventRow(e, now)), 'none in the last hour'));
	}

	tick(now) {
		for (const td of this.element.querySelectorAll('td.age'))
			setText(td, age(td.dataset.since, now));
	}

	hide() {
		this.element.hidden = true;
		this.labels = '';
	}
}

export const modeAction = (sandbox) => (isSuspended(sandbox) ? { label: 'Resume', mode: 'Running' } : { label: 'Suspend', mode: 'Suspended' });
