/** Mends VitePress's sidebar, where a group without a link has an arrow button inside its title button. */

const nested = /role="button"\s+aria-label="toggle section"(.*?)tabindex="0"/s

const conditional = [
  `:role="isLink ? 'button' : undefined"`,
  `:aria-label="isLink ? 'toggle section' : undefined"$1`,
  `:tabindex="isLink ? 0 : undefined"`,
].join(" ")

/** Changes the component's source. Fails if the source differs from the expected one. */
export const withOneButton = (component: string): string => {
  const mended = component.replace(nested, conditional)
  if (mended === component) throw new Error("The sidebar of VitePress has changed: look at it anew")
  return mended
}
