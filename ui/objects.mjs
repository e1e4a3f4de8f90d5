// What there is to say of an object in a row: a table of kinds and their columns. Pure.

const AGENTS = '/apis/agents.x-k8s.io/v1beta1';
const EXTENSIONS = '/apis/extensions.agents.x-k8s.io/v1beta1';

export function condition(object, type) {
	return object.status?.conditions?.find((c) => c.type === type);
}

/** Milliseconds as two units at most, as kubectl writes an age. */
export function duration(ms) {
	const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
	const two = (whole, unit, rest, part) => (rest ? `${whole}${unit}${rest}${part}` : `${whole}${unit}`);
	if (s < 120)
		return `${s}s`;
	if (m < 10)
		return two(m, 'm', s % 60, 's');
	if (m < 180)
		return `${m}m`;
	if (h < 8)
		return two(h, 'h', m % 60, 'm');
	if (h < 48)
		return `${h}h`;
	if (d < 8)
		return two(d, 'd', h % 24, 'h');
	if (d < 730)
		return `${d}d`;
	return two(Math.floor(d / 365), 'y', d % 365, 'd');
}

export function age(timestamp, now) {
	const at = Date.parse(timestamp || '');
	return Number.isNaN(at) ? '' : duration(now - at);
}

export const isSuspended = (sandbox) => sandbox.spec?.operatingMode === 'Suspended';

/** The Pod of a Sandbox, once there is one: of a pool's member it may have another name. */
export function podOf(sandbox) {
	return isSuspended(sandbox) ? '' : sandbox.metadata.annotations?.['agents.x-k8s.io/pod-name'] || (sandbox.status ? sandbox.metadata.name : '');
}

/** Those that a shell can be had in, the one that is meant first. */
export function containersOf(sandbox) {
	const names = (sandbox.spec?.podTemplate?.spec?.containers || []).map((c) => c.name);
	const meant = sandbox.spec?.podTemplate?.metadata?.annotations?.['kubectl.kubernetes.io/default-container'];
	return names.includes(meant) ? [meant, ...names.filter((n) => n !== meant)] : names;
}

const FAILING = /Fail|Error|Crash|Refused|Exceeded|Invalid|Expired|Finished|Unschedulable/;

/** How it is: a word for people and a tone for its mark. */
export function readiness(object) {
	const ready = condition(object, 'Ready');
	if (object.metadata.deletionTimestamp)
		return { text: 'Terminating', tone: 'wait' };
	if (isSuspended(object) || ready?.reason === 'SandboxSuspended') // a Sandbox, or the claim of one
		return { text: 'Suspended', tone: 'idle' };
	if (!ready)
		return { text: 'Pending', tone: 'wait' };
	if (ready.status === 'True')
		return { text: 'Ready', tone: 'ok' };
	return { text: 'Not ready', tone: FAILING.test(ready.reason || '') ? 'bad' : 'wait' };
}

function reason(object) {
	const ready = condition(object, 'Ready');
	return ready && ready.status !== 'True' ? { text: ready.reason || '', title: ready.message || '' } : { text: '' };
}

function poolReady(pool) {
	const wanted = pool.spec?.replicas ?? 0, ready = pool.status?.readyReplicas ?? 0;
	return { text: `${ready} / ${wanted}`, tone: ready >= wanted ? 'ok' : 'wait' };
}

const namespace = { title: 'Namespace', width: 'small', cell: (o) => ({ text: o.metadata.namespace }) };
const name = { title: 'Name', width: 'wide', isName: true, cell: (o) => ({ text: o.metadata.name }) };
const state = { title: 'State', width: 'middle', cell: readiness };
const why = { title: 'Reason', width: 'wide', cell: reason };
const since = { title: 'Age', width: 'age', isAge: true, cell: (o, now) => ({ text: age(o.metadata.creationTimestamp, now) }) };

export const KINDS = [
	{
		id: 'pools', title: 'Pools', kind: 'SandboxWarmPool', path: EXTENSIONS, plural: 'sandboxwarmpools', columns: [
			namespace, name,
			{ title: 'Ready', width: 'small', cell: poolReady },
			{ title: 'Template', width: 'wide', cell: (o) => ({ text: o.spec?.sandboxTemplateRef?.name || '' }) },
			since,
		],
	},
	{
		id: 'claims', title: 'Claims', kind: 'SandboxClaim', path: EXTENSIONS, plural: 'sandboxclaims', columns: [
			namespace, name, state,
			{ title: 'Sandbox', width: 'wide', cell: (o) => ({ text: o.status?.sandbox?.name || '' }) },
			{ title: 'Pool', width: 'wide', cell: (o) => ({ text: o.spec?.warmPoolRef?.name || '' }) },
			why, since,
		],
	},
	{
		id: 'sandboxes', title: 'Sandboxes', kind: 'Sandbox', path: AGENTS, plural: 'sandboxes', columns: [
			namespace, name, state,
			{ title: 'Mode', width: 'small', cell: (o) => ({ text: o.spec?.operatingMode || '' }) },
			why,
			{ title: 'Pod', width: 'wide', cell: (o) => ({ text: podOf(o) }) },
			since,
		],
	},
];

/** Of a collection: everywhere, or in one namespace. */
export function collectionPath(kind, namespaceName) {
	return `${kind.path}/${namespaceName ? `namespaces/${encodeURIComponent(namespaceName)}/` : ''}${kind.plural}`;
}

export function objectPath(kind, object) {
	return `${collectionPath(kind, object.metadata.namespace)}/${encodeURIComponent(object.metadata.name)}`;
}

export const eventsPath = (object) => `/api/v1/namespaces/${encodeURIComponent(object.metadata.namespace)}/events`;

/** Every word of the filter stands somewhere in the row. */
export function matches(kind, object, words) {
	if (words.length === 0)
		return true;
	const row = kind.columns.map((c) => (c.isAge ? '' : c.cell(object, 0).text)).join(' ').toLowerCase();
	return words.every((word) => row.includes(word));
}

export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** When an Event was last seen, in either of its forms. */
export const eventTime = (event) => event.series?.lastObservedTime || event.lastTimestamp || event.eventTime || event.metadata.creationTimestamp;

/** Newest first. */
export function sortEvents(events) {
	return [...events].sort((a, b) => (eventTime(a) < eventTime(b) ? 1 : eventTime(a) > eventTime(b) ? -1 : 0));
}

/** What is shown of an object as a whole: without what only machines read. */
export function shown(object) {
	const { name: n, namespace: ns, creationTimestamp, generation, deletionTimestamp, labels, annotations, ownerReferences } = object.metadata;
	const owners = ownerReferences?.map((o) => `${o.kind} ${o.name}`);
	const { conditions, ...status } = object.status || {};
	const kept = { name: n, namespace: ns, creationTimestamp, generation, deletionTimestamp, labels, annotations, owners };
	for (const key of Object.keys(kept))
		if (kept[key] === undefined)
			delete kept[key];
	return { metadata: kept, spec: object.spec || {}, status };
}
