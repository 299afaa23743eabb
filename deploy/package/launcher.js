#!/usr/bin/env node
// Starts the binary from the package of this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const name = `@moothall/${process.platform}-${process.arch}`;
let binary;
try {
    binary = require.resolve(`${name}/bin/moothall`);
} catch {
    console.error(`error: the package ${name} is not installed`);
    console.error(
        "hint: install moothall without `--omit=optional`; on a platform without a package, build it from source",
    );
    process.exit(4);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
    console.error(`error: cannot start ${binary}: ${error.message}`);
    process.exit(4);
});
// The terminal sends Ctrl-C to the binary too, which decides how to end.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
        if (signal !== "SIGINT") child.kill(signal);
    });
}
child.on("exit", (code, signal) => {
    if (signal) {
        process.removeAllListeners(signal);
        process.kill(process.pid, signal);
    } else {
        process.exit(code);
    }
});
