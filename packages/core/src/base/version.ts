/** The version of Tenure, as the package has it: `npm run release:version` writes this module. */
export const version = "0.1.0"
