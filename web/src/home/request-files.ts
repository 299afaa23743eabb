import { Problem } from "../api/client";
import type { RequestFile } from "../gen/api";

/** The server's limit of all files of a request. */
const MAX_TOTAL_BYTES = 32 * 1024 * 1024;

export const DOCUMENT_TYPES = ".md,.markdown,.txt,.text,.csv,.tsv,.pdf";

/** Reads files for a request. */
export async function requestFiles(files: readonly File[]): Promise<RequestFile[]> {
  const total = files.reduce((sum, file) => sum + file.size, 0);
  if (total > MAX_TOTAL_BYTES)
    throw new Problem(0, "bad-file", "The files are larger than 32 MiB together.", "Remove some of them.");
  return Promise.all(files.map(requestFile));
}

async function requestFile(file: File): Promise<RequestFile> {
  return { name: file.name, base64: await base64(file) };
}

function base64(file: File): Promise<string> {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    // A data URL: the content follows the first comma.
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => fail(new Problem(0, "bad-file", `Cannot read ${file.name}.`, "Choose it again."));
    reader.readAsDataURL(file);
  });
}
