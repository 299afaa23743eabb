/** How many times slower than this machine the page runs; finds tests and pages that count on speed. */
export const slowdown = Number(process.env["MOOTHALL_SLOWDOWN"] ?? "1");
