'use strict';
(() => {
  const Module = require('module');
  const fs = require('fs');
  const judged = @MODULES@;
  const main = @MAIN@;
  const writable = (name) => @WRITABLE@.some((place) => name === place || name.startsWith(`${place}/`));
  const refuse = (name) => {
    const e = new Error(`Cannot find module '${name}': it was not judged with this program; name it where it is required`);
    e.code = 'MODULE_NOT_FOUND';
    throw e;
  };
  for (const ext of Object.keys(Module._extensions).concat('.cjs')) {
    const load = Module._extensions[ext] || Module._extensions['.js'];
    Module._extensions[ext] = (module, name) => {
      if (Object.prototype.hasOwnProperty.call(judged, name)) {
        let text = fs.readFileSync(judged[name], 'utf8');
        if (text.charCodeAt(0) === 0xFEFF) text = text.slice(1);
        module._compile(text, name);
        return;
      }
      if (writable(name) && ext !== '.json') refuse(name);
      load(module, name);
    };
  }
  if (main !== null) {
    process.argv[1] = main;
    Module._load(main, null, true);
  }
})();
