const PATHS = {
  check: <path d="m3.5 8.5 3 3 6-7" />,
  run: (
    <>
      <circle cx="8" cy="8" r="5.5" strokeDasharray="9 4" />
      <circle cx="8" cy="8" r="1.8" fill="currentColor" stroke="none" />
    </>
  ),
  wait: <circle cx="8" cy="8" r="5.5" strokeDasharray="1.5 2.6" />,
  warn: (
    <>
      <path d="M8 2.5 14 13H2Z" />
      <path d="M8 6.5v3M8 11.4v.1" />
    </>
  ),
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  play: <path d="M5 3.5v9l7.5-4.5Z" />,
  stop: <rect x="4" y="4" width="8" height="8" rx="1" />,
  link: <path d="M6.5 9.5 9.5 6.5M7 4.5 8.6 3a3 3 0 0 1 4.3 4.3L11.4 9M9 11.5 7.4 13A3 3 0 0 1 3.1 8.7L4.6 7" />,
  copy: <path d="M6 6h7v7H6ZM10 3.500V3H3v7h.500" />,
  help: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M6.2 6.2a1.9 1.9 0 1 1 2.700 1.8c-.6.3-.9.700-.9 1.300M8 11.600v.1" />
    </>
  ),
  bell: <path d="M4 11.500V7.500a4 4 0 0 1 8 0v4l1 1H3ZM6.500 14h3" />,
  down: <path d="M8 2.5v8M4.8 7.5 8 10.7l3.2-3.2M3 13.5h10" />,
  compare: <path d="M5 13.5v-11M2.5 5 5 2.5 7.5 5M11 2.5v11M8.5 11l2.5 2.5 2.5-2.5" />,
  zoomOut: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3 3M5 7h4" />
    </>
  ),
  search: (
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3 3" />
    </>
  ),
  theme: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11Z" fill="currentColor" />
    </>
  ),
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  shield: <path d="M8 2.2 13 4v4c0 3-2.2 4.9-5 6-2.8-1.1-5-3-5-6V4Z" />,
  print: <path d="M4.5 6V2.500h7V6M4.5 11.500h-2V6.500h11v5h-2M4.5 9.500h7v4h-7Z" />,
  out: <path d="M6 3.500H3v9.500h9.500V10M9 3h4v4M13 3 7.5 8.5" />,
  person: <path d="M8 8a2.6 2.6 0 1 0 0-5.200A2.6 2.6 0 0 0 8 8ZM3 13.500c.500-2.5 2.5-3.7 5-3.700s4.5 1.2 5 3.7" />,
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="ic" viewBox="0 0 16 16" aria-hidden="true">
      {PATHS[name]}
    </svg>
  );
}
