'use strict';
// Gives programs the host's tools by their plain names. Nothing is loaded before it is used.
for (const name of @NAMES@) {
  if (!(name in globalThis)) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => require('./tools.js')[name],
      set: (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true }),
    });
  }
}
