/** The playground: buttons and pictures for the simulation in the page. */

import { type VNode, computed, defineComponent, h, onMounted, onUnmounted, shallowRef } from "vue"
import {
  type Computer,
  type Playground,
  type Scene,
  makePlayground,
} from "../../../packages/lab/simulation/playground.ts"

const speeds = [1, 10, 60, 600] as const
const extensionMillis = 60_000
const clockMillis = 3_600_000
const shownLines = 200
// The slider covers at least 150 seconds, and at least 30 beyond the present.
const leastSpan = 150_000
const ahead = 30_000

const second = (millis: number): string => {
  const at = new Date(millis).toISOString()
  return at.slice(11, 19)
}

const fromNow = (millis: number): string => {
  const seconds = Math.ceil(millis / 1000)
  return seconds <= 0 ? "ended" : seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}

const button = (text: string, onClick: () => void, label = text): VNode =>
  h("button", { type: "button", "aria-label": label, onClick }, text)

const badge = (text: string, kind: "good" | "bad" | "plain"): VNode =>
  h("span", { class: `badge ${kind}` }, text)

const panel = (title: string, items: ReadonlyArray<VNode>): VNode =>
  h("section", [h("h3", title), h("ul", [...items])])

const log = ({ told }: Scene): VNode =>
  h("details", [
    h("summary", `What happened (${told.length})`),
    h(
      "ol",
      told
        .slice(-shownLines)
        .toReversed()
        .map(({ at, what, who }) => h("li", `${second(at)} ${who}: ${what}`)),
    ),
  ])

/** Starts a playground and shows each scene on the page. */
const usePlayground = () => {
  let playground: Playground | undefined
  let seed = 0
  // Time passes in one turn after the other.
  let last: Promise<unknown> = Promise.resolve()
  const scene = shallowRef<Scene>()
  const fault = shallowRef<string>()
  const begin = shallowRef(0)

  const act = (work: (on: Playground) => unknown): void => {
    last = last
      .then(() => (playground === undefined ? undefined : work(playground)))
      .then(() => {
        scene.value = playground?.scene()
      })
      .catch((error: unknown) => {
        fault.value = String(error)
      })
  }

  const restart = (): void => {
    fault.value = undefined
    last = last.then(async () => {
      playground = await makePlayground(++seed)
      begin.value = playground.scene().now
    })
    act(() => undefined)
  }

  return { act, restart, scene, fault, begin, last: () => last }
}

/** Advances time while running, at a multiple of real time. */
const useTime = (pass: (millis: number) => Promise<unknown>) => {
  const isRunning = shallowRef(false)
  const speed = shallowRef<number>(speeds[1])
  let frame = 0
  let before = 0

  const tick = (now: number): void => {
    // A tab in the background does not catch up.
    const millis = Math.min(100, now - before)
    before = now
    void pass(millis * speed.value).then(() => {
      if (isRunning.value) frame = requestAnimationFrame(tick)
    })
  }

  const pause = (): void => {
    isRunning.value = false
    cancelAnimationFrame(frame)
  }

  const start = (): void => {
    if (isRunning.value) return
    isRunning.value = true
    before = performance.now()
    frame = requestAnimationFrame(tick)
  }

  onUnmounted(pause)
  return { isRunning, speed, pause, start }
}

/** The playground. */
export default defineComponent({
  name: "Playground",
  setup: () => {
    const { act, begin, fault, last, restart, scene } = usePlayground()
    const { isRunning, pause, speed, start } = useTime((millis) => {
      act((on) => on.pass(millis))
      return last()
    })
    onMounted(restart)

    const nextEnd = computed(() => {
      const { members = [], now = 0 } = scene.value ?? {}
      const ends = members.map(({ endDate }) => endDate).filter((endDate) => endDate > now)
      return ends.length === 0 ? undefined : Math.min(...ends)
    })

    const passUntil = (instant: number): void => {
      act((on) => on.pass(Math.max(0, instant - on.scene().now)))
    }

    const controls = ({ members, now }: Scene): VNode => {
      const span = Math.max(leastSpan, now - begin.value + ahead)
      const place = (at: number): string => `${(100 * (at - begin.value)) / span}%`
      const ends = members.filter(({ endDate }) => endDate <= begin.value + span)
      return h("div", { class: "controls" }, [
        h("div", { class: "buttons" }, [
          isRunning.value ? button("Pause", pause) : button("Start", start),
          button("One step", () => {
            pause()
            act((on) => on.step())
          }),
          nextEnd.value === undefined
            ? undefined
            : button("Past the next end", () => passUntil((nextEnd.value ?? now) + 1000)),
          h("label", [
            "Speed ",
            h(
              "select",
              {
                value: speed.value,
                onChange: (event: Event) => {
                  if (event.target instanceof HTMLSelectElement)
                    speed.value = Number(event.target.value)
                },
              },
              speeds.map((value) => h("option", { value }, `${value}×`)),
            ),
          ]),
          button("Start over", () => {
            pause()
            restart()
          }),
          h("output", { "aria-label": "Time" }, second(now)),
        ]),
        h("div", { class: "time-line" }, [
          h("input", {
            type: "range",
            "aria-label": "Drag time forward",
            min: 0,
            max: span,
            step: 1000,
            value: now - begin.value,
            onInput: (event: Event) => {
              if (event.target instanceof HTMLInputElement)
                passUntil(begin.value + Number(event.target.value))
            },
          }),
          ...ends.map(({ endDate, userId }) =>
            h("span", { class: "end", style: { left: place(endDate) } }, userId),
          ),
        ]),
      ])
    }

    const computer = (
      which: number | "store",
      { isUp, name, wallMillis }: Computer,
      more: ReadonlyArray<VNode>,
    ): VNode =>
      h("li", { key: name }, [
        h("strong", name),
        badge(isUp ? "up" : "down", isUp ? "good" : "bad"),
        h("span", second(wallMillis)),
        ...more,
        button(
          "+1 h",
          () => act((on) => on.setClock(which, clockMillis)),
          `Set the clock of ${name} an hour ahead`,
        ),
      ])

    const panels = ({ members, now, processes, receiver, store, waiting }: Scene): VNode =>
      h("div", { class: "panels" }, [
        panel(
          "Members",
          members.map(({ endDate, userId }) =>
            h("li", { key: userId }, [
              h("strong", userId),
              badge(fromNow(endDate - now), endDate > now ? "good" : "bad"),
              h("span", `ends ${second(endDate)}`),
              button(
                "+1 min",
                () => act((on) => on.extend(userId, extensionMillis)),
                `Extend ${userId} by a minute`,
              ),
            ]),
          ),
        ),
        panel("Processes and store", [
          ...processes.map((process, number) =>
            computer(number, process, [
              button("Kill", () => act((on) => on.kill(number)), `Kill ${process.name}`),
            ]),
          ),
          computer("store", store, [
            button(store.isUp ? "Take away" : "Give back", () =>
              act((on) => on.setStore(!store.isUp)),
            ),
          ]),
        ]),
        panel("Receiver", [
          h("li", [
            badge(receiver.isUp ? "answers 204" : "refuses", receiver.isUp ? "good" : "bad"),
            h("span", `${waiting} waiting`),
            button(receiver.isUp ? "Refuse webhooks" : "Accept webhooks", () =>
              act((on) => on.setReceiver(!receiver.isUp)),
            ),
          ]),
          ...receiver.received
            .toReversed()
            .map(({ at, isAccepted, isVerified, type, userId }) =>
              h("li", { class: "webhook", key: `${at} ${type}` }, [
                h("span", second(at)),
                h("code", type),
                h("strong", userId),
                badge(isVerified ? "verified" : "not verified", isVerified ? "good" : "bad"),
                isAccepted ? undefined : badge("refused", "bad"),
              ]),
            ),
        ]),
      ])

    return () =>
      h("div", { class: "playground" }, [
        fault.value === undefined
          ? undefined
          : h("p", { role: "alert" }, `The simulation stopped: ${fault.value}`),
        ...(scene.value === undefined
          ? [h("p", "The simulation is starting…")]
          : [controls(scene.value), panels(scene.value), log(scene.value)]),
      ])
  },
})
