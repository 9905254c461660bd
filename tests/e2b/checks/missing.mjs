// missing.mjs - what this server does not have: each is answered 501 with a sentence.
import { check, e2b, missing } from '../harness.mjs';

const { Secret, Template, Volume } = e2b;

check('Volume.create static', () => missing(() => Volume.create('v')));
check('Volume.connect static', () => missing(() => Volume.connect('v')));
check('Volume.getInfo static', () => missing(() => Volume.getInfo('v')));
check('Volume.list static', () => missing(() => Volume.list()));
check('Volume.destroy static', () => missing(() => Volume.destroy('v')));

check(['Secret.create static', 'SecretCreateOpts.metadata'], () => missing(() => Secret.create('s', 'v', { metadata: { a: 'b' } })));
check(['Secret.update static', 'SecretUpdateOpts.metadata'], () => missing(() => Secret.update('s', 'v', { metadata: { a: 'b' } })));
check('Secret.getInfo static', () => missing(() => Secret.getInfo('s')));
check('Secret.exists static', () => missing(() => Secret.exists('s')));
check('Secret.destroy static', () => missing(() => Secret.destroy('s')));
check(['Secret.list static', 'SecretListOpts.limit', 'SecretListOpts.nextToken', 'SecretPaginator.nextItems'], () => missing(() => Secret.list({ limit: 1, nextToken: 'a' }).nextItems()));

const template = () => Template().fromBaseImage();
check(['TemplateBase.build static', 'BasicBuildOptions.alias', 'BasicBuildOptions.cpuCount', 'BasicBuildOptions.memoryMB', 'BasicBuildOptions.minFreeDiskMb',
  'BasicBuildOptions.onBuildLogs', 'BasicBuildOptions.skipCache', 'BasicBuildOptions.tags'],
() => missing(() => Template.build(template(), { alias: 'a', cpuCount: 1, memoryMB: 512, tags: ['t'], skipCache: true, onBuildLogs: () => {} })));
check('TemplateBase.buildInBackground static', () => missing(() => Template.buildInBackground(template(), { alias: 'a' })));
check(['TemplateBase.getBuildStatus static', 'GetBuildStatusOptions.logsOffset', 'BuildInfo.buildId', 'BuildInfo.templateId'],
  () => missing(() => Template.getBuildStatus({ templateId: 't', buildId: 'b' }, { logsOffset: 1 })));
check('TemplateBase.exists static', () => missing(() => Template.exists('a')));
check('TemplateBase.aliasExists static', () => missing(() => Template.aliasExists('a')));
check('TemplateBase.getTags static', () => missing(() => Template.getTags('a')));
check('TemplateBase.assignTags static', () => missing(() => Template.assignTags('a:b', ['c'])));
check('TemplateBase.removeTags static', () => missing(() => Template.removeTags('a', ['c'])));
