// The page: who asks, what is followed, and what the buttons do.
import { Api, forgetToken, hasToken, keepToken, takeToken } from './api.mjs';
import { ask, byId, el, setText } from './dom.mjs';
import { Detail, modeAction } from './detail.mjs';
import { Follower, keyOf } from './follow.mjs';
import { collectionPath, containersOf, eventsPath, KINDS, objectPath, podOf, wordsOf } from './objects.mjs';
import { Table } from './rows.mjs';
import { Terminal } from './terminal.mjs';

const TICK_MS = 1000; // ages
const FILTER_MS = 120; // after the last key

let api;
let session = new AbortController(); // of whoever is signed in
let chosen = null; // {kind, key, uid}
let events = null; // Follower of the chosen object's
let reachesIn = false; // whether this server has Pods, and runs commands in them
const followers = new Map(); // by id of the kind
const states = new Map(); // by id: what its follower told last
const touched = new Map(); // by id: keys to draw in the next frame

const tables = new Map(KINDS.map((kind) => [kind.id, new Table(kind, choose)]));
const detail = new Detail(byId('detail'), { actions: actionsOf, closed: () => unchoose(true) });
const terminal = new Terminal();
byId('lists').append(...[...tables.values()].map((table) => table.element));

// ---- drawing ----

/** At most once a frame, however much has come; when the page is not seen, less often still. */
function draw() {
	if (touched.size === 0)
		return;
	const now = Date.now();
	for (const [id, keys] of touched)
		tables.get(id).update(followers.get(id).items, keys, now);
	drawChosen(now);
	touched.clear();
	offerNamespaces();
}

function touch(id, keys) {
	if (touched.size === 0)
		(document.hidden ? setTimeout : requestAnimationFrame)(draw, TICK_MS);
	const before = touched.get(id);
	touched.set(id, before ? before.union?.(keys) ?? new Set([...before, ...keys]) : keys);
}

function drawChosen(now) {
	if (!chosen || !touched.get(chosen.kind.id)?.has(chosen.key))
		return;
	const object = followers.get(chosen.kind.id).items.get(chosen.key);
	if (object?.metadata.uid === chosen.uid)
		detail.show(chosen.kind, object, now);
	else
		unchoose();
}

const namespacesSeen = new Set();
function offerNamespaces() {
	for (const { items } of followers.values())
		for (const { metadata } of items.values())
			if (!namespacesSeen.has(metadata.namespace)) {
				namespacesSeen.add(metadata.namespace);
				byId('namespaces').append(el('option', { value: metadata.namespace }));
			}
}

setInterval(() => {
	if (document.hidden)
		return;
	const now = Date.now();
	for (const table of tables.values())
		table.tick(now);
	if (chosen)
		detail.tick(now);
}, TICK_MS);

// ---- following ----

function told(id, state, error) {
	states.set(id, state);
	if (error?.status === 401) {
		signIn(error.message);
		return;
	}
	tables.get(id).fail(state === 'waiting' && error ? failure(error) : '');
	const all = [...states.values()];
	const [text, tone] = all.includes('waiting') ? ['Not connected, trying again', 'bad'] : all.includes('loading') ? ['Loading', 'wait'] : ['Live', ''];
	setText(byId('state'), text);
	byId('state').dataset.tone = tone;
}

function failure(error) {
	return error.status === 403 && !byId('namespace').value
		? `${error.message}. A namespace, above, may be another matter.`
		: error.status ? error.message : 'The server does not answer.';
}

function followAll() {
	const namespaceName = byId('namespace').value.trim();
	session.abort();
	session = new AbortController();
	unchoose();
	for (const kind of KINDS) {
		const follower = new Follower(api, collectionPath(kind, namespaceName), {
			changed: (keys) => touch(kind.id, keys),
			told: (state, error) => told(kind.id, state, error),
		});
		session.signal.addEventListener('abort', () => follower.stop());
		followers.set(kind.id, follower);
		touched.delete(kind.id);
		tables.get(kind.id).update(follower.items, null, Date.now());
		follower.run();
	}
}

function followEvents(object) {
	events?.stop();
	detail.showEvents([], Date.now());
	const follower = new Follower(api, eventsPath(object), {
		query: new URLSearchParams({ fieldSelector: `involvedObject.uid=${object.metadata.uid}` }),
		changed: () => detail.showEvents([...follower.items.values()], Date.now()),
		told: (state, error) => {
			if (!error?.status)
				return;
			follower.stop(); // in a cluster Events are the cluster's, not this server's; and not everybody may read them
			detail.showEvents(null, Date.now());
		},
	});
	events = follower;
	follower.run();
}

// ---- the chosen one ----

function choose(kind, object) {
	unchoose();
	chosen = { kind, key: keyOf(object), uid: object.metadata.uid };
	tables.get(kind.id).select(chosen.key);
	detail.show(kind, object, Date.now());
	followEvents(object);
}

function chooseNamed(kindName, namespaceName, name) {
	const kind = KINDS.find((k) => k.kind === kindName), object = followers.get(kind.id).items.get(`${namespaceName}/${name}`);
	if (object)
		choose(kind, object);
}

/** wantsFocus: back to the row, for whoever came from there. */
function unchoose(wantsFocus = false) {
	if (!chosen)
		return;
	const table = tables.get(chosen.kind.id);
	chosen = null;
	events?.stop();
	events = null;
	if (wantsFocus)
		table.focusSelected();
	table.select(null);
	detail.hide();
}

function actionsOf(kind, object) {
	const actions = [];
	if (kind.kind === 'Sandbox') {
		const { label, mode } = modeAction(object);
		actions.push({ label, run: () => attempt(() => api.merge(objectPath(kind, object), { spec: { operatingMode: mode } })) });
	}
	if (kind.kind === 'Sandbox' && reachesIn && podOf(object))
		actions.push({ label: 'Terminal', run: () => terminal.open(api, object.metadata.namespace, podOf(object), containersOf(object)) });
	if (kind.kind === 'SandboxClaim' && object.status?.sandbox?.name)
		actions.push({ label: 'Show sandbox', run: () => chooseNamed('Sandbox', object.metadata.namespace, object.status.sandbox.name) });
	if (kind.kind === 'SandboxWarmPool')
		actions.push({ label: 'New claim', run: () => claimFrom(object) });
	actions.push({ label: 'Delete', isDanger: true, run: () => remove(kind, object) });
	return actions;
}

async function remove(kind, object) {
	setText(byId('confirm-title'), `Delete ${kind.kind} ${object.metadata.name}?`);
	setText(byId('confirm-text'), `In namespace ${object.metadata.namespace}. What belongs to it goes with it.`);
	if (await ask(byId('confirm'), byId('confirm-no')))
		await attempt(() => api.delete(objectPath(kind, object), object.metadata.uid));
}

async function claimFrom(pool) {
	setText(byId('claim-title'), `A sandbox from ${pool.metadata.name}`);
	byId('claim-name').value = `${pool.metadata.name}-${Math.random().toString(36).slice(2, 7)}`.slice(-63);
	if (!await ask(byId('claim'), byId('claim-no')))
		return;
	const kind = KINDS.find((k) => k.kind === 'SandboxClaim');
	await attempt(() => api.request('POST', collectionPath(kind, pool.metadata.namespace), {
		body: {
			apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim',
			metadata: { name: byId('claim-name').value.trim(), namespace: pool.metadata.namespace },
			spec: { warmPoolRef: { name: pool.metadata.name } },
		},
	}));
}

/** What goes wrong is said, in the server's words. */
async function attempt(action) {
	say('');
	try {
		await action();
	} catch (error) {
		say(error.status ? error.message : 'The server does not answer.');
	}
}

function say(text) {
	byId('notice').hidden = text === '';
	setText(byId('notice-text'), text);
}

// ---- who asks ----

let isAsking = false;
async function signIn(why) {
	if (isAsking)
		return;
	isAsking = true;
	session.abort();
	forgetToken(sessionStorage);
	unchoose();
	terminal.close();
	setText(byId('sign-in-why'), why);
	byId('token').value = '';
	const isGiven = await ask(byId('sign-in'));
	const given = byId('token').value.trim();
	isAsking = false;
	byId('token').value = '';
	if (isGiven && given) {
		keepToken(sessionStorage, given);
		begin();
	} else if (!hasToken(sessionStorage)) { // else it came by the address meanwhile
		setText(byId('state'), 'Not signed in');
		setText(byId('leave'), 'Sign in');
	}
}

function begin() {
	const token = takeToken(location, history, sessionStorage);
	byId('sign-in').close();
	if (!token) {
		signIn('');
		return;
	}
	setText(byId('leave'), 'Sign out');
	api = new Api(token);
	say('');
	reachesIn = false;
	api.get('/api/v1').then(({ resources }) => {
		reachesIn = resources.some(({ name }) => name === 'pods/exec');
	}).catch(() => {}); // in a cluster Pods are the cluster's, not this server's
	followAll();
}

function leave() {
	for (const [id, table] of tables) {
		followers.get(id)?.items.clear();
		table.update(new Map(), null, Date.now());
	}
	signIn('');
}

// ---- keys and fields ----

byId('leave').addEventListener('click', leave);
byId('notice-close').addEventListener('click', () => say(''));
byId('filters').addEventListener('submit', (event) => event.preventDefault());
byId('namespace').addEventListener('change', () => api && followAll());
window.addEventListener('hashchange', () => location.hash.includes('token=') && begin());

let filterTimer;
byId('filter').addEventListener('input', () => {
	clearTimeout(filterTimer);
	filterTimer = setTimeout(() => {
		for (const table of tables.values())
			table.setFilter(wordsOf(byId('filter').value), Date.now());
	}, FILTER_MS);
});

document.addEventListener('keydown', (event) => {
	const isTyping = event.target.closest('input, textarea, dialog') !== null;
	if (event.key === '/' && !isTyping) {
		event.preventDefault();
		byId('filter').focus();
	}
	if (event.key === 'Escape' && !isTyping)
		unchoose(true);
});

begin();
