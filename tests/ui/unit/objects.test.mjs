// What rows say of objects.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { age, collectionPath, containersOf, duration, KINDS, matches, objectPath, podOf, readiness, shown, sortEvents, wordsOf } from '../../../ui/objects.mjs';

const S = 1000, M = 60 * S, H = 60 * M, D = 24 * H;
const [pools, claims, sandboxes] = KINDS;
const sandbox = (more = {}) => ({ kind: 'Sandbox', metadata: { name: 'a', namespace: 'ns', ...more.metadata }, spec: { operatingMode: 'Running', ...more.spec }, status: more.status });
const ready = (status, reason) => ({ conditions: [{ type: 'Ready', status, reason, message: 'because' }] });
const textsOf = (kind, object) => kind.columns.map((c) => c.cell(object, Date.parse('2026-01-01T00:05:00Z')).text);

test('durations as kubectl writes them', () => {
	for (const [ms, text] of [[-5 * S, '0s'], [119 * S, '119s'], [2 * M, '2m'], [2 * M + S, '2m1s'], [10 * M + S, '10m'], [179 * M, '179m'], [3 * H, '3h'],
		[3 * H + M, '3h1m'], [8 * H + M, '8h'], [47 * H, '47h'], [2 * D, '2d'], [2 * D + 3 * H, '2d3h'], [9 * D + H, '9d'], [729 * D, '729d'], [731 * D, '2y1d']])
		assert.equal(duration(ms), text);
	assert.equal(age('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:03Z')), '3s');
	assert.equal(age(undefined, 0), '');
});

test('how a Sandbox is', () => {
	for (const [object, text, tone] of [
		[sandbox(), 'Pending', 'wait'],
		[sandbox({ status: ready('True', 'DependenciesReady') }), 'Ready', 'ok'],
		[sandbox({ status: ready('False', 'DependenciesNotReady') }), 'Not ready', 'wait'],
		[sandbox({ status: ready('False', 'ReconcilerError') }), 'Not ready', 'bad'],
		[sandbox({ status: ready('False', 'x'), spec: { operatingMode: 'Suspended' } }), 'Suspended', 'idle'],
		[{ kind: 'SandboxClaim', metadata: {}, status: ready('False', 'SandboxSuspended') }, 'Suspended', 'idle'],
		[sandbox({ status: ready('True', 'x'), metadata: { deletionTimestamp: 'now' } }), 'Terminating', 'wait'],
	])
		assert.deepEqual(readiness(object), { text, tone });
});

test('the Pod of a Sandbox', () => {
	assert.equal(podOf(sandbox()), '');
	assert.equal(podOf(sandbox({ status: {} })), 'a');
	assert.equal(podOf(sandbox({ status: {}, metadata: { annotations: { 'agents.x-k8s.io/pod-name': 'other' } } })), 'other');
	assert.equal(podOf(sandbox({ status: {}, spec: { operatingMode: 'Suspended' } })), '');
});

test('the container that is meant comes first', () => {
	const of = (names, meant) => ({ spec: { podTemplate: { metadata: { annotations: { 'kubectl.kubernetes.io/default-container': meant } }, spec: { containers: names.map((name) => ({ name })) } } } });
	assert.deepEqual(containersOf(of(['a', 'b', 'c'], 'b')), ['b', 'a', 'c']);
	assert.deepEqual(containersOf(of(['a', 'b'], 'x')), ['a', 'b']);
	assert.deepEqual(containersOf({}), []);
});

test('a row of each kind', () => {
	const metadata = { name: 'x', namespace: 'ns', creationTimestamp: '2026-01-01T00:00:00Z' };
	assert.deepEqual(textsOf(pools, { metadata, spec: { replicas: 2, sandboxTemplateRef: { name: 't' } } }), ['ns', 'x', '0 / 2', 't', '5m']);
	assert.deepEqual(textsOf(claims, { metadata, spec: { warmPoolRef: { name: 'p' } }, status: { ...ready('False', 'Why'), sandbox: { name: 's' } } }),
		['ns', 'x', 'Not ready', 's', 'p', 'Why', '5m']);
	assert.deepEqual(textsOf(sandboxes, { ...sandbox(), metadata }), ['ns', 'x', 'Pending', 'Running', '', '', '5m']);
	assert.deepEqual(textsOf(claims, { metadata: { name: 'x', namespace: 'ns' } }), ['ns', 'x', 'Pending', '', '', '', '']);
});

test('the filter looks for all of its words, anywhere in the row', () => {
	const object = sandbox({ status: ready('False', 'ImagePullFailed') });
	for (const [text, isIn] of [['', true], ['IMAGE ns', true], ['running', true], ['image other', false], ['  ', true]])
		assert.equal(matches(sandboxes, object, wordsOf(text)), isIn, text);
});

test('paths hold whatever a name holds', () => {
	assert.equal(collectionPath(sandboxes, ''), '/apis/agents.x-k8s.io/v1beta1/sandboxes');
	assert.equal(objectPath(claims, { metadata: { namespace: 'a/b', name: '?c' } }), '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/a%2Fb/sandboxclaims/%3Fc');
});

test('events come newest first, in both of their forms', () => {
	const events = [{ lastTimestamp: '2026-01-01T00:00:01Z' }, { eventTime: '2026-01-01T00:00:03Z' }, { series: { lastObservedTime: '2026-01-01T00:00:02Z' }, eventTime: '2025' }];
	assert.deepEqual(sortEvents(events).map((e) => events.indexOf(e)), [1, 2, 0]);
});

test('what is shown of an object leaves out what only machines read', () => {
	const object = sandbox({ metadata: { uid: 'u', resourceVersion: '1', managedFields: [], ownerReferences: [{ kind: 'K', name: 'n', uid: 'v' }] }, status: { ...ready('True', ''), nodeName: 'n' } });
	assert.deepEqual(shown(object), { metadata: { name: 'a', namespace: 'ns', owners: ['K n'] }, spec: { operatingMode: 'Running' }, status: { nodeName: 'n' } });
});
