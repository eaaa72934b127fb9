// http: the door to the outside. A Node server that checks Host, Origin, size and the access token before any route
// sees a request, and answers every refusal with a Status that says what to do. Routes are a table (`routes.ts`), and the
// description at /api/openapi.json is written from it.
// Left out: pages and sockets, which come with the browser.
export { type AccessToken, loadAccessToken } from './access-token.ts';
export { type HttpServer, type HttpServerOptions, type Route, startHttpServer } from './http-server.ts';
export { createRoutes, type RoutesOptions } from './routes.ts';
