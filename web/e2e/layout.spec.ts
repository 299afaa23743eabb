// The layout by measurement: widths, labels, digits, the meter on phones, the contrast of chosen rows.
import type { Locator, Page } from "@playwright/test";
import { cutLabels, isLoaded, prepareRoutes, rawBackticks, sidewaysWidths, tooSmall } from "./routes";
import { expect, Server, test } from "./server";

const isPhone = (page: Page) => (page.viewportSize()?.width ?? 0) <= 700;

/** The width of the content in a wide window. */
async function wideContent(page: Page): Promise<string> {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 1920, height: 1000 });
  const width = await page
    .locator("main > *")
    .first()
    .evaluate((one) => {
      const own = one.getBoundingClientRect().width;
      return own === document.documentElement.clientWidth ? "window" : `${own} px`;
    });
  if (size) await page.setViewportSize(size);
  return width;
}

// One visit of each page for everything that is measured on it: loading takes longer than measuring.
test("every page fits its window, shows whole labels, sets code as code and has targets for fingers", async ({
  page,
  server,
  finished,
}) => {
  test.setTimeout(300_000);
  const found: string[] = [];
  const widths = new Map<string, string[]>();
  for (const route of [...(await prepareRoutes(page, server, finished)), "/review#none"]) {
    await page.goto(route);
    await isLoaded(page);
    const problems = await cutLabels(page, isPhone(page));
    if (isPhone(page)) problems.push(...(await tooSmall(page)));
    else {
      problems.push(...(await rawBackticks(page)), ...(await sidewaysWidths(page)));
      const width = await wideContent(page);
      widths.set(width, [...(widths.get(width) ?? []), route]);
    }
    found.push(...problems.map((problem) => `${route}: ${problem}`));
  }
  expect(found).toEqual([]);
  const expected = isPhone(page) ? [] : ["1320 px", "900 px", "window"];
  expect([...widths.keys()].sort(), JSON.stringify([...widths])).toEqual(expected);
});

test("sign-in, refusals and pages of read-only users do not scroll sideways", async ({ page }, info) => {
  test.skip(info.project.name !== "desktop", "sets the widths itself");
  test.setTimeout(120_000);
  const server = await Server.make("0", "without images", "tokens");
  const signIn = async (token: string) => {
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  try {
    await page.goto(`${server.url}/`);
    await expect(page).toHaveURL(/\/login$/);
    expect(await sidewaysWidths(page)).toEqual([]);
    await signIn("moot_wrong");
    await expect(page.getByText(/unknown, expired or revoked/)).toBeVisible();
    expect(await sidewaysWidths(page)).toEqual([]);
    await page.goto(`${server.url}/login?code=used-already`);
    await expect(page.getByLabel("Token")).toBeVisible();
    expect(await sidewaysWidths(page)).toEqual([]);
    await page.goto(server.url.replace("127.0.0.1", "other.localhost"));
    await expect(page.getByText(/does not accept the host name/)).toBeVisible();
    expect(await sidewaysWidths(page)).toEqual([]);
    await page.goto(`${server.url}/review`);
    await expect(page.getByText("This link is incomplete")).toBeVisible();
    expect(await sidewaysWidths(page)).toEqual([]);
    await page.goto(`${server.url}/login`);
    await signIn(server.token("read"));
    await expect(page.getByText("You have read-only access. Ask an admin for run access.")).toBeVisible();
    for (const route of ["/", "/runs", "/tasks", "/compare", "/drafts", "/audit", "/settings"]) {
      await page.goto(`${server.url}${route}`);
      await isLoaded(page);
      expect(await sidewaysWidths(page), route).toEqual([]);
    }
  } finally {
    await server.remove();
  }
});

test("the meter of a run is folded on phones and open elsewhere", async ({ page, finished }) => {
  await page.goto(`/runs/${finished}`);
  const box = page.locator("details.meterbox");
  const summary = box.locator("summary");
  const meter = page.locator(".meter");
  await expect(box).toHaveJSProperty("open", !isPhone(page));
  if (isPhone(page)) {
    await expect(meter).toBeHidden();
    await expect(summary).toHaveText(/^\$\S+ · \d[\d,]* calls · \d+:\d\d/);
    expect((await box.boundingBox())?.height).toBeLessThanOrEqual(56);
    await summary.click();
  } else await expect(summary).toBeHidden();
  await expect(meter).toBeVisible();
});

test("numbers are set in the sans typeface with digits of equal width", async ({ page, finished }) => {
  test.setTimeout(120_000);
  const numbers: [string, string[]][] = [
    ["/runs", [".runtable .costcell", ".runtable .whencell"]],
    [`/runs/${finished}`, [".meter .v", ".meterbox > summary"]],
    [`/runs/${finished}?layer=0`, [".facts5 td", ".factline dd.num"]],
    [`/runs/${finished}?layer=3`, [".lane .sc", ".lhd .rn span"]],
    [`/runs/${finished}?layer=4`, [".rline .sc"]],
    [`/runs/${finished}/results`, [".facts b", ".t40 .l b", ".mrow .num", ".orow .sc", ".orow .sp", ".svgnum text"]],
    [`/runs/${finished}/calls`, [".callrows .c-cost", ".callsum td"]],
    [`/compare?a=${finished}&b=${finished}`, [".ranktable .num"]],
  ];
  const found: string[] = [];
  for (const [route, selectors] of numbers) {
    await page.goto(route);
    await isLoaded(page);
    for (const selector of selectors) {
      const all = page.locator(selector);
      await expect(all.first(), `${route} ${selector}`).toBeAttached();
      const looks = await all.evaluateAll((ones) => {
        const shown = ones.filter((one) => one.checkVisibility());
        return shown.map((one) => {
          const { fontFamily, fontVariantNumeric } = getComputedStyle(one);
          return `${fontFamily.split(",")[0]} ${fontVariantNumeric}`.replaceAll('"', "");
        });
      });
      const odd = [...new Set(looks)].filter((look) => look !== "Geist tabular-nums");
      found.push(...odd.map((look) => `${route} ${selector}: ${look}`));
    }
  }
  expect(found).toEqual([]);
});

/** The texts whose contrast with their background is less than 4.5, with the contrast. */
function faintTexts(rows: Locator): Promise<string[]> {
  return rows.evaluateAll((all) => {
    const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    if (!pixel) return ["no canvas"];
    // Painted one over the other, because a colour may be transparent.
    const luminance = (colours: string[]) => {
      for (const colour of colours) {
        pixel.fillStyle = colour;
        pixel.fillRect(0, 0, 1, 1);
      }
      const [red = 0, green = 0, blue = 0] = [...pixel.getImageData(0, 0, 1, 1).data].map((byte) => {
        const part = byte / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const elements = all.flatMap((row) => [row, ...row.querySelectorAll("*")]);
    const texts = elements.filter((one) => {
      const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim() !== "");
      return hasText && one.checkVisibility() && !one.closest(".sr");
    });
    return texts.flatMap((one) => {
      const behind: string[] = [];
      for (let at: Element | null = one; at; at = at.parentElement) {
        behind.unshift(getComputedStyle(at).backgroundColor);
      }
      const back = luminance(behind);
      const text = luminance([...behind, getComputedStyle(one).color]);
      const contrast = (Math.max(back, text) + 0.05) / (Math.min(back, text) + 0.05);
      return contrast < 4.5 ? [`"${one.textContent}" ${contrast.toFixed(2)}`] : [];
    });
  });
}

test("chosen rows are readable in both themes", async ({ page, finished }) => {
  const call = encodeURIComponent("m2/round-1/D1");
  const chosen: [string, string[]][] = [
    [`/runs/${finished}?layer=3&move=m2`, [".lane[aria-current=true]", ".stg[aria-expanded=true]"]],
    [`/runs/${finished}/calls?move=m2&call=${call}`, [".callrow.on"]],
    ["/runs", [".runtable .chosen"]],
  ];
  for (const [route, selectors] of chosen) {
    await page.goto(route);
    await isLoaded(page);
    const boxes = page.getByRole("checkbox", { name: /Select HLXI/ });
    if (route === "/runs") await boxes.first().check();
    for (const theme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
      for (const selector of selectors) {
        const rows = page.locator(selector);
        await expect(rows.first()).toBeVisible();
        expect(await faintTexts(rows), `${theme} ${selector}`).toEqual([]);
      }
    }
  }
});
