/** Moves a development server's clock. */

import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { type Move, type ServerClock, askClock } from "../lib/clock.ts"
import { Announce } from "./action.tsx"
import { Outages, Renew, messageOf } from "./load.tsx"
import { Ago, Icon, Time, utcOf } from "./text.tsx"

const dayMillis = 86_400_000

// How often to ask while time goes on, in milliseconds.
const interval = 1000

// A month in a minute.
const month = { days: 30, seconds: 60 }

/** A slider, and buttons to play and to go to the next event. */
export const ClockControl = ({ days }: { readonly days: number }) => {
  const announce = useContext(Announce)
  const renew = useContext(Renew)
  const turn = useContext(Outages)
  const [clock, setClock] = useState<ServerClock | undefined>()
  const [target, setTarget] = useState<number | undefined>()
  const controller = useRef(new AbortController())
  const ask = async (move?: Move) => {
    try {
      setClock(await askClock(controller.current.signal, move))
    } catch (error) {
      if (!controller.current.signal.aborted) announce(messageOf(error))
    }
    setTarget(undefined)
    if (move !== undefined) renew()
  }
  const isPlaying = clock?.playing === true
  useEffect(() => void ask(), [turn])
  useEffect(() => {
    if (!isPlaying) return undefined
    // Each answer reloads the screen, and the screen reads the clock.
    const timer = setInterval(renew, interval)
    return () => clearInterval(timer)
  }, [isPlaying])
  useEffect(() => () => controller.current.abort(), [])
  if (clock === undefined) return null
  const time = Date.parse(clock.now)
  // Time only goes on.
  const reached = (value: string) => Math.max(time, Number(value))
  const span = days * dayMillis
  const start = Date.parse(clock.start)
  const from = start + Math.floor((time - start) / span) * span
  return (
    <div class="clock" role="group" aria-label="The server's clock">
      <input
        type="range"
        aria-label="Move the time on"
        aria-valuetext={utcOf(new Date(target ?? time).toISOString())}
        min={from}
        max={from + span}
        step={3_600_000}
        value={target ?? time}
        onInput={({ currentTarget }) => setTarget(reached(currentTarget.value))}
        onChange={({ currentTarget }) =>
          void ask({ to: new Date(reached(currentTarget.value)).toISOString() })
        }
      />
      <div class="filters">
        <button
          type="button"
          onClick={() => void ask(isPlaying ? { pause: true } : { play: month })}
        >
          <Icon of={isPlaying ? "pause" : "play"} />
          {isPlaying ? "Pause" : "Play a month"}
        </button>
        <button
          type="button"
          disabled={isPlaying || clock.next === null}
          onClick={() => void ask({ step: true })}
        >
          <Icon of="step" />
          Next event
        </button>
        <span>
          It is <Time iso={new Date(target ?? time).toISOString()} /> UTC.
        </span>
        {clock.next !== null && (
          <span class="dim">
            Next: {clock.next.what}, <Ago iso={clock.next.at} />
          </span>
        )}
      </div>
    </div>
  )
}
