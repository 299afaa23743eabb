import clsx from "clsx";
import { type DragEvent, useId, useState } from "react";
import { CodeText } from "./code-text";
import { FieldProblem } from "./field";
import { Button } from "./parts";

/** Chooses files, by dropping them or with the file dialog, and lists them. */
export function FilePicker({
  label,
  hint,
  files,
  accept,
  single,
  problem,
  onChange,
}: {
  label: string;
  hint: string;
  files: readonly File[];
  accept?: string;
  single?: boolean;
  problem: string | undefined;
  onChange: (files: File[]) => void;
}) {
  const id = useId();
  const [over, setOver] = useState(false);
  // A file with the name of an earlier one replaces it.
  const add = (more: FileList | null) => {
    const added = Array.from(more ?? []);
    if (added.length === 0) return;
    const names = new Set(added.map((one) => one.name));
    onChange(single ? added.slice(0, 1) : [...files.filter((one) => !names.has(one.name)), ...added]);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    add(event.dataTransfer.files);
  };
  return (
    <fieldset
      className={clsx("files", over && "over")}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <label className="lab" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        type="file"
        multiple={!single}
        accept={accept}
        aria-describedby={`${id}-h`}
        aria-invalid={problem !== undefined}
        onChange={(event) => {
          add(event.target.files);
          // The same file can be chosen again after it was removed.
          event.target.value = "";
        }}
      />
      <p className="muted" id={`${id}-h`}>
        <CodeText text={hint} />
      </p>
      {files.length > 0 && (
        <ul className="filelist" aria-label={`${label}: chosen`}>
          {files.map((file) => (
            <li key={file.name}>
              <span className="fname">{file.name}</span>
              <span className="muted">{size(file.size)}</span>
              <Button
                look="ghost"
                size="small"
                icon="close"
                aria-label={`Remove ${file.name}`}
                onClick={() => onChange(files.filter((one) => one !== file))}
              />
            </li>
          ))}
        </ul>
      )}
      <FieldProblem>{problem}</FieldProblem>
    </fieldset>
  );
}

function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
}
