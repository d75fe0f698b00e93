/** The payment of a seed. */

/** The webhook of the project gets the events of all payments. */
export const projectId = "p1"

export const startDate = Date.UTC(2030, 0, 1)
export const endDate = Date.UTC(2040, 0, 1)

/** The member who pays. */
export const member = (seed: number | string) => ({ projectId, userId: `${1000 + Number(seed)}` })

/** The invoice that is paid: the host's row, the audit row and both events have it. */
export const invoiceOf = (seed: number | string): string => `invoice ${seed}`

/** The name by which the server knows the connection. */
export const nameOf = (seed: number | string): string => `payer ${seed}`
