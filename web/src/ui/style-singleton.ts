// Replaces the package `react-style-singleton`, with which Radix keeps the page behind a dialog from scrolling. The package
// adds a `<style>` element, which the content security policy of the server forbids; a constructed style sheet is allowed.
import { useEffect } from "react";

export function stylesheetSingleton() {
  let users = 0;
  let sheet: CSSStyleSheet | undefined;
  return {
    add(style: string): void {
      if (users === 0) {
        sheet = new CSSStyleSheet();
        sheet.replaceSync(style);
        document.adoptedStyleSheets.push(sheet);
      }
      users += 1;
    },
    remove(): void {
      users -= 1;
      if (users === 0) document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    },
  };
}

export function styleHookSingleton() {
  const sheet = stylesheetSingleton();
  return (styles: string, isDynamic?: boolean): void => {
    // As in the package: only dynamic styles are applied again when they change.
    const key = isDynamic ? styles : undefined;
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
    useEffect(() => {
      sheet.add(styles);
      return () => sheet.remove();
    }, [key]);
  };
}

export function styleSingleton() {
  const useStyle = styleHookSingleton();
  // biome-ignore lint/correctness/noComponentHookFactories: called once for each component, as the package is
  return function Style({ styles, dynamic }: { styles: string; dynamic?: boolean }): null {
    useStyle(styles, dynamic);
    return null;
  };
}
